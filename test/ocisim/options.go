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

// Options describe a region. The zero value is a region without signatures, limits or faults, with pages of 100. Those
// from PageSize on can be changed while the region is in use (Region.Configure); the JSON tags make Options a file.
type Options struct {
	// Seed makes durations, identifiers, dropped fields and the other random choices repeatable.
	Seed uint64 `json:"seed"`

	Region    string `json:"region"`    // long name; default "us-ashburn-1"
	RegionKey string `json:"regionKey"` // short key, used in OCIDs and in Instance.region; default "iad"
	Realm     string `json:"realm"`     // default "oc1"
	Tenancy   string `json:"tenancy"`   // OCID of the root compartment; made from the realm when empty

	// AvailabilityDomains are full names with the tenancy's prefix; default three, "Uocm:US-ASHBURN-AD-1" to 3.
	AvailabilityDomains []string `json:"availabilityDomains"`

	// Signatures makes the region refuse requests that are not correctly signed by a registered key.
	Signatures bool `json:"signatures"`

	// LogSize is the number of calls that the call log keeps; default 200,000. Counters never forget.
	LogSize int `json:"logSize"`

	// Attachments gives volumes content and attachments a device; nil, the default, means that both exist in the API
	// only. Region.Close takes all of it away.
	Attachments AttachmentBody `json:"-"`

	// PageSize caps the items of a page, whatever limit the caller asks for; default 100.
	PageSize int `json:"pageSize"`
	// ShortPages is the probability that a page ends early, perhaps with no item at all, although more follows.
	// Clients must not read a short or an empty page as the last one.
	ShortPages float64 `json:"shortPages"`

	// Durations replace the defaults of the named state changes, for example "loadbalancer.create"; Region.Durations
	// lists the names. "loadbalancer.*" and "*" are patterns, of which the more exact one wins.
	Durations map[string]Range `json:"durations,omitempty"`
	// Latency delays the answers of "service.Operation", of "service.*" or of "*"; the most exact one counts.
	Latency map[string]Range `json:"latency,omitempty"`

	// EventualReads is the number of reads (gets and lists) of every principal that miss a new resource. Writes find
	// it at once, and so do references in bodies.
	EventualReads int `json:"eventualReads"`
	// DropOptional is the probability that an optional field is left out of an answer.
	DropOptional float64 `json:"dropOptional"`

	// Read and Write limit each principal's calls to each service, in each direction. Rates overrides them for
	// "service.read" and "service.write"; patterns as in Durations. The zero Rate is unlimited. OCI publishes no
	// numbers; 20 reads and 10 writes per second are what third parties observed.
	Read  Rate            `json:"read"`
	Write Rate            `json:"write"`
	Rates map[string]Rate `json:"rates,omitempty"`
	// RetryAfter is sent with a 429 when it is not zero. OCI documents no such header, so the default is none.
	RetryAfter time.Duration `json:"retryAfter"`

	// Behaviour holds what is not established about the real services; DefaultBehaviour when nil. It is changed by
	// Region.SetBehaviour and Region.PatchBehaviour.
	Behaviour *Behaviour `json:"behaviour,omitempty"`

	// Balancers gives balancers a body that listens, forwards and checks backends; nil leaves them without. Package
	// traffic has one.
	Balancers BalancerBody `json:"-"`
}

// Harsh are options under which a client meets everything that the real service might do to it, short of errors:
// small and short pages, new resources that are missing from the first reads, optional fields left out, and the
// budgets that third parties observed.
func Harsh() Options {
	return Options{
		PageSize: 20, ShortPages: 0.2, EventualReads: 2, DropOptional: 0.25,
		Read: Rate{PerSecond: 20, Burst: 20}, Write: Rate{PerSecond: 10, Burst: 10},
	}
}

// Range is a span of durations; a value is drawn evenly from Min to Max. A Max below Min counts as Min. As text it is
// "20s-1m", or "20s" where both are equal.
type Range struct {
	Min time.Duration
	Max time.Duration
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
