// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// Behaviour is the table of what could not be established about the real services. Every entry has a default with
// its reason, and a test may change each of them.
type Behaviour struct {
	// Rulings say what the services answer in situations whose answer is not documented.
	Rulings map[Situation]Ruling

	// TerminatedVisible is how long a terminated instance still answers GET and is listed. Users see them for
	// about an hour in the console; the API's time is not documented.
	TerminatedVisible time.Duration
	// VNICLinger is how long a VNIC outlives the load balancer or instance that it belonged to, and keeps its
	// security groups busy. Reports say 1 to 5 minutes.
	VNICLinger Range
	// EventualFor is how long after its creation a resource can still be missing from reads (Options.EventualReads).
	// The SDKs reckon with four minutes after writes of identity; nothing is known of the other services.
	EventualFor time.Duration
	// ListsLagByThemselves counts the lists that miss a new resource (Options.EventualReads) apart from the gets, so
	// that a list may still miss what a get has shown, and the other way round. Nothing is known about it; the
	// default is that a principal who has seen a resource goes on seeing it.
	ListsLagByThemselves bool
	// PageTokenLife is how long a page token can be used. Only the existence of the error is documented.
	PageTokenLife time.Duration
	// WorkRequestLife is how long a finished work request can be read. Oracle does not document it.
	WorkRequestLife time.Duration
	// RulesChangeGroupETag makes a change of rules change the etag of their network security group too. The
	// group's own representation has no rules, so the default is that it does not.
	RulesChangeGroupETag bool
	// MaxSecurityListRules is the number of rules per direction of a security list: 200 is the known default of
	// the service limit.
	MaxSecurityListRules int
	// MaxRouteRules is the number of rules of a route table: 200 static ones by the published service limits, from
	// memory.
	MaxRouteRules int
	// MaxAddressesPerVNIC is the number of private IPs, and of IPv6 addresses, of a VNIC, the primary one and blocks
	// included: 32 is what pod networking of OKE counts on (31 pods and the VNIC itself). Whether a block counts as one is not
	// established.
	MaxAddressesPerVNIC int
	// MaxGroupRules is the number of rules of a network security group: 120 by third-party accounts.
	MaxGroupRules int
	// ServiceLimits holds limits by name, for example "lb-100mbps-count": 0. A limit without an entry is unlimited:
	// the real numbers are a tenancy's own. File systems and mount targets have the defaults that users report.
	ServiceLimits map[string]int
	// DeletedBalancerVisible is how long a deleted load balancer still answers GET and lists, as DELETED. Users'
	// logs show a 404 at once.
	DeletedBalancerVisible time.Duration
	// DeletedFileStorageVisible is how long a deleted file system (Lustre too), mount target, export set, export or snapshot still
	// answers GET and lists, as DELETED. That they stay visible is documented by the state itself, the time is not.
	DeletedFileStorageVisible time.Duration
	// BalancerLimits are numbers of parts of a load balancer: "hostnames", "pathRouteSets", "pathRoutes" of a set,
	// "routingPolicies", "routingRules" of a policy, "sslCipherSuites", "certificates", "ruleSets", "rules" of a set.
	BalancerLimits map[string]int
	// LustreMinCapacity is the capacity, in GB, that a Lustre file system has at least: existing drivers ask for it
	// where nobody names one. LustreCapacityStep is that of an increase: the API's documentation says 5 TB.
	LustreMinCapacity, LustreCapacityStep int
	// MaxFreeformTags, MaxDefinedTags and MaxTagBytes bound the tags of one resource.
	MaxFreeformTags, MaxDefinedTags, MaxTagBytes int

	// TerminatedVolumeVisible is how long a terminated volume or backup still answers GET and is listed. That they do
	// is known, for how long is not; the console shows them for about a day.
	TerminatedVolumeVisible time.Duration
	// DetachedVisible is how long a DETACHED attachment is still listed. As for terminated volumes.
	DetachedVisible time.Duration
	// ResizeProvisions lets a change of size or performance pass through PROVISIONING. Clients of the service wait for
	// AVAILABLE after an update, so the default is that it does.
	ResizeProvisions bool
	// ResizeShownAtOnce shows the new size and performance while the change is still going on. Not documented; the
	// default, at the end, is what a client that trusts the first answer would get wrong.
	ResizeShownAtOnce bool
	// DetachedAutoTune is how long a volume with auto-tuning must be detached until its performance goes down to the
	// lower cost level: 14 days by the documentation.
	DetachedAutoTune time.Duration
	// VolumeCapacity is the free storage in GB by availability domain. A domain without an entry has no limit.
	VolumeCapacity map[string]int64
	// MaxVolumesPerInstance bounds the attachments of one instance by its shape, "" for all others: 32, the number of
	// device paths. MaxPVVolumes bounds the paravirtualized ones: 16 were reported for VM.Standard.E5.Flex.
	MaxVolumesPerInstance, MaxPVVolumes map[string]int
	// MaxInstancesPerVolume bounds the attachments of one shareable volume: 32 are documented.
	MaxInstancesPerVolume int
	// MultipathDevices is the number of further paths of an iSCSI attachment of an ultra high performance volume
	// (30 VPUs and more). How many the service gives is not documented.
	MultipathDevices int
	// AgentLogsIn lets the instance's agent log in to iSCSI attachments that ask for it. The default is true: the
	// plugin is on in Oracle's images.
	AgentLogsIn bool
}

// SetBehaviour changes entries of the table while the region is in use.
func (r *Region) SetBehaviour(change func(*Behaviour)) {
	cl := r.lock()
	defer r.mu.Unlock()
	change(cl.behaviour)
}

// Situation names something whose exact answer is not established.
type Situation string

// Ruling is the answer to a Situation.
type Ruling struct {
	Allow   bool   `json:"allow"` // the call goes on as if nothing were wrong
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"` // a format; its arguments are those of the situation
	Reason  string `json:"reason"`  // why this is the default
}

// The situations of the virtual network and of the engine.
const (
	TooManySecurityListRules Situation = "security list with too many rules"
	TooManyGroupRules        Situation = "network security group with too many rules"
	UnknownGroupRule         Situation = "update or removal of an unknown security rule"
	TooManyTags              Situation = "too many or too large tags"
	ReservedIPInUse          Situation = "reserved public address already assigned"
	AddressInUse             Situation = "private address already in use"
	AddressOutsideSubnet     Situation = "address outside the subnet"
	SubnetFull               Situation = "no free address in the subnet"
	PrimaryAddressDelete     Situation = "delete of a primary private address"
)

// DefaultBehaviour returns a fresh table of defaults.
func DefaultBehaviour() *Behaviour {
	b := &Behaviour{
		Rulings:              map[Situation]Ruling{},
		ServiceLimits:        map[string]int{FileSystemLimit: 100, MountTargetLimit: 2},
		BalancerLimits:       defaultBalancerLimits(),
		TerminatedVisible:    time.Hour,
		VNICLinger:           Range{Min: time.Minute, Max: 5 * time.Minute},
		PageTokenLife:        time.Hour,
		EventualFor:          4 * time.Minute,
		WorkRequestLife:      24 * time.Hour,
		MaxSecurityListRules: 200,
		MaxGroupRules:        120,
		MaxRouteRules:        200,
		MaxAddressesPerVNIC:  32,
		MaxFreeformTags:      10,
		MaxDefinedTags:       64,
		MaxTagBytes:          5 * 1024,

		DeletedFileStorageVisible: time.Hour,
		LustreMinCapacity:         31200,
		LustreCapacityStep:        5000,
	}
	setBlockDefaults(b)
	for _, rulings := range []map[Situation]Ruling{
		networkRulings(),
		balancerRulings(),
		fileRulings(),
		blockRulings(),
		lustreRulings(),
		monitoringRulings(),
		lifeRulings(),
		launchRulings(),
		identityRulings(),
	} {
		maps.Copy(b.Rulings, rulings)
	}
	return b
}

func networkRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		TooManySecurityListRules: {
			Status: http.StatusBadRequest, Code: "LimitExceeded",
			Message: "The %s rules of security list %s exceed the limit of %d.",
			Reason:  "the limit is known, its error is not; LimitExceeded is the documented code for service limits",
		},
		TooManyGroupRules: {
			Status: http.StatusBadRequest, Code: "LimitExceeded",
			Message: "The rules of network security group %s exceed the limit of %d.",
			Reason:  "as for security lists",
		},
		UnknownGroupRule: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "The security rule %s does not exist in network security group %s.",
			Reason:  "the id is named in the body, and it is not an OCID, so neither 404 nor RelatedResource fits",
		},
		TooManyTags: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "The tags are not valid: %s.",
			Reason:  "limits are known, the code is not; 400 InvalidParameter is what validation errors use",
		},
		ReservedIPInUse: {
			Status: http.StatusConflict, Code: "Conflict",
			Message: "The public IP %s is already assigned to %s.",
			Reason:  "documented as an error, code from memory",
		},
		AddressInUse: {
			Status: http.StatusConflict, Code: "Conflict",
			Message: "The IP address %s is already in use in subnet %s.",
			Reason:  "another object holds the address, which is what Conflict is for",
		},
		AddressOutsideSubnet: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "The IP address %s is not available in subnet %s.",
			Reason:  "validation of a parameter",
		},
		SubnetFull: {
			Status: http.StatusBadRequest, Code: "LimitExceeded",
			Message: "The subnet %s has no free IP address.",
			Reason:  "work requests report exhausted subnets as BAD_INPUT; the synchronous code is not documented",
		},
		PrimaryAddressDelete: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "The primary IP address %s of a VNIC cannot be deleted.",
			Reason:  "documented as impossible without its code",
		},
	}
}

// rule returns the error that the table holds for a situation, or nil where the table allows it. A situation without
// an entry is refused as 409 Conflict, so that a test which clears the table sees it.
func (cl *cloud) rule(s Situation, args ...any) error {
	ruling, ok := cl.behaviour.Rulings[s]
	switch {
	case !ok:
		return &APIError{Status: http.StatusConflict, Code: "Conflict", Message: string(s)}
	case ruling.Allow:
		return nil
	case !strings.Contains(ruling.Message, "%"):
		return &APIError{Status: ruling.Status, Code: ruling.Code, Message: ruling.Message}
	}
	return &APIError{Status: ruling.Status, Code: ruling.Code, Message: fmt.Sprintf(ruling.Message, args...)}
}
