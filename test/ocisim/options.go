// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "time"

// Names of the services, as they appear in operation names ("compute.GetInstance"), in the call log and in rates.
const (
	ServiceIdentity            = "identity"
	ServiceCompute             = "compute"
	ServiceVirtualNetwork      = "virtualnetwork"
	ServiceLoadBalancer        = "loadbalancer"
	ServiceNetworkLoadBalancer = "networkloadbalancer"
)

// Options describe a region. The zero value is a region without signatures, limits or faults, with pages of 100.
type Options struct {
	// Seed makes durations, identifiers, dropped fields and the other random choices repeatable.
	Seed uint64

	Region    string // long name; default "us-ashburn-1"
	RegionKey string // short key, used in OCIDs and in Instance.region; default "iad"
	Realm     string // default "oc1"
	Tenancy   string // OCID of the root compartment; made from the realm when empty

	// AvailabilityDomains are full names with the tenancy's prefix; default three, "Uocm:US-ASHBURN-AD-1" to 3.
	AvailabilityDomains []string

	// PageSize caps the items of a page, whatever limit the caller asks for; default 100.
	PageSize int
	// ShortPages is the probability that a page ends early, perhaps with no item at all, although more follows.
	// Clients must not read a short or an empty page as the last one.
	ShortPages float64

	// Signatures makes the region refuse requests that are not correctly signed by a registered key.
	Signatures bool

	// Durations replace the defaults of the named state changes, for example "loadbalancer.create"; the names
	// are those of the service tables. Latency delays the answers of "service.Operation" or of "*".
	Durations map[string]Range
	Latency   map[string]Range

	// EventualReads is the number of reads (get or list) that miss a new resource.
	EventualReads int
	// DropOptional is the probability that an optional field is left out of an answer.
	DropOptional float64

	// Read and Write limit each principal's calls to each service, in each direction. Rates overrides them for
	// "service.read" and "service.write". The zero Rate is unlimited. OCI publishes no numbers; 20 reads and 10
	// writes per second are what third parties observed.
	Read, Write Rate
	Rates       map[string]Rate
	// RetryAfter is sent with a 429 when it is not zero. OCI documents no such header, so the default is none.
	RetryAfter time.Duration

	// LogSize is the number of calls that the call log keeps; default 200,000. Counters never forget.
	LogSize int

	// Behaviour holds what is not established about the real services; DefaultBehaviour when nil.
	Behaviour *Behaviour
}

// Range is a span of durations; a value is drawn evenly from Min to Max.
type Range struct {
	Min time.Duration `json:"min,omitempty"`
	Max time.Duration `json:"max,omitempty"`
}

// Rate is a token bucket: PerSecond tokens flow in, Burst are kept (at least one). Zero PerSecond means no limit.
type Rate struct {
	PerSecond float64 `json:"perSecond,omitempty"`
	Burst     int     `json:"burst,omitempty"`
}

func (o Options) withDefaults() Options {
	if o.Region == "" {
		o.Region = "us-ashburn-1"
	}
	if o.RegionKey == "" {
		o.RegionKey = "iad"
	}
	if o.Realm == "" {
		o.Realm = "oc1"
	}
	if o.Tenancy == "" {
		o.Tenancy = "ocid1.tenancy." + o.Realm + "..aaaaaaaasimulatedtenancy000000000000000000000000000000000000"
	}
	if len(o.AvailabilityDomains) == 0 {
		o.AvailabilityDomains = defaultDomains(o.Region)
	}
	if o.PageSize <= 0 {
		o.PageSize = 100
	}
	if o.LogSize <= 0 {
		o.LogSize = 200_000
	}
	return o
}
