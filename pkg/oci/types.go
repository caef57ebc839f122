// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"time"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
)

// Tags are the freeform and defined tags of a resource. A nil map means that the answer carried none.
type Tags struct {
	Freeform map[string]string
	Defined  map[string]map[string]any
}

// Instance is a compute instance. States are those of the Compute API: MOVING, PROVISIONING, RUNNING, STARTING,
// STOPPING, STOPPED, CREATING_IMAGE, TERMINATING, TERMINATED; a value outside this list is kept as it came.
type Instance struct {
	ID                 string
	CompartmentID      string
	AvailabilityDomain string // with the tenancy's prefix, "Uocm:PHX-AD-1"
	FaultDomain        string // may be empty: optional in the API
	Region             string // as the API gives it: a key ("iad") or a name ("eu-frankfurt-1")
	Shape              string
	DisplayName        string
	State              string
	Metadata           map[string]string
	TimeCreated        time.Time
	PVEncryption       bool   // launch option: paravirtualized attachments are encrypted in transit
	ETag               string // of a single read; lists have none
	Tags
}

// VNICAttachment joins an instance and a VNIC. The API does not say here which attachment is the primary one.
type VNICAttachment struct {
	ID                 string
	CompartmentID      string
	AvailabilityDomain string
	InstanceID         string
	VNICID             string // empty until the attachment has a VNIC
	SubnetID           string
	State              string // ATTACHING, ATTACHED, DETACHING, DETACHED
	NICIndex           int
}

// VNIC is a virtual network interface card.
type VNIC struct {
	ID            string
	CompartmentID string
	SubnetID      string
	State         string // PROVISIONING, AVAILABLE, TERMINATING, TERMINATED
	DisplayName   string
	HostnameLabel string // optional
	IsPrimary     bool
	PrivateIP     string
	PublicIP      string   // optional
	IPv6Addresses []string // optional
	NSGIDs        []string
	Tags
}

// Subnet is a subnet of a VCN. AvailabilityDomain is empty for a regional subnet.
type Subnet struct {
	ID                 string
	CompartmentID      string
	VCNID              string
	AvailabilityDomain string
	DisplayName        string
	DNSLabel           string
	DomainName         string // "nodes.one.oraclevcn.com"; optional
	State              string
	CIDRs              []string // IPv4
	IPv6CIDRs          []string
	SecurityListIDs    []string
	ProhibitPublicIP   bool // a private subnet
}

// VCN is a virtual cloud network.
type VCN struct {
	ID            string
	CompartmentID string
	CIDRs         []string
	IPv6CIDRs     []string
	State         string
}

// PublicIP is a public IPv4 address object.
type PublicIP struct {
	ID               string
	CompartmentID    string
	IPAddress        string
	Lifetime         string // EPHEMERAL, RESERVED
	State            string
	AssignedEntityID string
}

// PrivateIP is a private IPv4 address of a VNIC.
type PrivateIP struct {
	ID            string
	VNICID        string
	SubnetID      string
	IPAddress     string
	HostnameLabel string // optional; of a primary address it is the VNIC's
	IsPrimary     bool
	Bits          int // prefix length, if it is a block of addresses; else 0
	Tags
}

// IPv6 is an IPv6 address of a VNIC.
type IPv6 struct {
	ID        string
	VNICID    string
	SubnetID  string
	IPAddress string
	Bits      int // prefix length, if it is a block of addresses; else 0
	Tags
}

// BalancerKind tells load balancers from network load balancers. Its values are those of the annotation
// oci.oraclecloud.com/load-balancer-type.
type BalancerKind string

// The two kinds of balancers.
const (
	KindLB  BalancerKind = "lb"
	KindNLB BalancerKind = "nlb"
)

// Values of Balancer.IPMode.
const (
	IPModeV4   = "IPV4"
	IPModeV6   = "IPV6"
	IPModeDual = "IPV4_AND_IPV6"
)

// ShapeFlexible is the name of the shape that has bounds; all others are of a fixed size.
const ShapeFlexible = "flexible"

// Balancer is a load balancer (LB) or a network load balancer (NLB), as read from the cloud or as asked for at creation.
//
// What a read returned is remembered inside (origin), so that an update of one sub-resource sends every field that the
// caller does not control just as the cloud has it.
type Balancer struct {
	Kind          BalancerKind
	ID            string
	CompartmentID string
	DisplayName   string
	State         string // CREATING, UPDATING (NLB), ACTIVE, FAILED, DELETING, DELETED
	ETag          string
	TimeCreated   time.Time

	SubnetIDs []string // NLB: exactly one
	Private   bool
	NSGIDs    []string
	IPMode    string // IPv4, IPv6, IPv4_AND_IPv6: "IPV4", "IPV6", "IPV4_AND_IPV6"
	Addresses []BalancerAddress

	// Reserved are OCIDs of reserved public IPs (create only).
	ReservedIPIDs []string
	// AssignedPrivateIPv4 and AssignedIPv6 ask for fixed addresses of the subnet (NLB, create only).
	AssignedPrivateIPv4 string
	AssignedIPv6        string

	Shape *Shape // LB only

	BackendSets map[string]BackendSet
	Listeners   map[string]Listener
	RuleSets    map[string]RuleSet `json:",omitempty"` // LB only
	// Certificates of an LB.
	Certificates map[string]Certificate `json:",omitempty"`

	DeleteProtection bool
	Tags
}

// BalancerAddress is one address of a balancer.
type BalancerAddress struct {
	IP         string
	Public     bool
	ReservedID string // OCID of the reserved public IP, if it is one
}

// Shape is the size of a load balancer. MinMbps and MaxMbps are set only for the shape named "flexible".
type Shape struct {
	Name    string
	MinMbps int
	MaxMbps int
}

// BackendSet is a backend set of either kind. Fields marked LB or NLB exist for that kind only and are ignored for the
// other.
//
// In an update the fields of this type hold, as those of Listener do: zero and nil mean the API's default. What the type
// does not model stays as the value was read, so a caller changes a value that it has read. WithBackends replaces the
// backends.
type BackendSet struct {
	Name     string
	Policy   string
	Checker  HealthChecker
	Backends []Backend

	PreserveSource *bool  // NLB
	IPVersion      string // NLB: IPV4 or IPV6; empty leaves the cloud's default
	SSL            *SSL   // LB

	origin any // the SDK object this was read from; updates start from it
}

// Backend is one target of a backend set.
type Backend struct {
	IP       string
	Port     int
	TargetID string // NLB: OCID of the instance
	Weight   int
	Backup   bool
	Drain    bool
	Offline  bool

	origin any
}

// HealthChecker is the health check of a backend set. Times are in milliseconds.
type HealthChecker struct {
	Protocol          string // HTTP, TCP (NLB also HTTPS, UDP, DNS)
	Port              int
	URLPath           string
	ReturnCode        int
	Retries           int
	TimeoutMillis     int
	IntervalMillis    int
	ResponseBodyRegex string
	ForcePlainText    *bool // LB
}

// Listener is a listener of either kind.
type Listener struct {
	Name           string
	BackendSetName string
	Port           int
	Protocol       string // LB: HTTP, HTTP2, TCP, GRPC; NLB: TCP, UDP, TCP_AND_UDP, ANY, L3IP

	IPVersion string // NLB
	PPv2      *bool  // NLB

	SSL                  *SSL     // LB
	IdleTimeoutSeconds   *int64   // LB
	ProxyProtocolVersion *int     // LB
	RuleSetNames         []string // LB

	origin any
}

// SSL is the TLS setting of a listener or of a backend set of a load balancer.
type SSL struct {
	CertificateName       string
	CipherSuiteName       string
	Protocols             []string
	VerifyDepth           int
	VerifyPeerCertificate bool
}

// Certificate is a certificate bundle of a load balancer, PEM throughout. Listeners and backend sets refer to it by its name
// (SSL.CertificateName), which cannot change; nor can the bundle. Its key and passphrase are sent, and never read.
type Certificate struct {
	Name       string // letters, digits, - and _
	Public     string
	CA         string // optional
	Key        config.Secret
	Passphrase config.Secret // of an encrypted key
}

// WorkRequest is the state of an asynchronous operation.
type WorkRequest struct {
	ID         string
	Operation  string // as the service names it, "CreateLoadBalancer" or "CREATE_NETWORK_LOAD_BALANCER"
	ResourceID string // OCID of the balancer; may be empty until the service knows it
	State      WorkRequestState
	Percent    float32
	Errors     []WorkRequestProblem // of a FAILED request
	RequestID  string               // opc-request-id of the answer that this was read from, for Oracle's support
	Accepted   time.Time
}

// WorkRequestState is the state of a work request, the same for all services.
type WorkRequestState string

// The states of a work request; the last three are final.
const (
	WorkRequestAccepted   WorkRequestState = "ACCEPTED"
	WorkRequestInProgress WorkRequestState = "IN_PROGRESS"
	WorkRequestSucceeded  WorkRequestState = "SUCCEEDED"
	WorkRequestFailed     WorkRequestState = "FAILED"
	WorkRequestCanceled   WorkRequestState = "CANCELED"
)

// Done says whether the work request has ended.
func (s WorkRequestState) Done() bool {
	return s == WorkRequestSucceeded || s == WorkRequestFailed || s == WorkRequestCanceled
}

// WorkRequestProblem is one entry of a work request's error list.
type WorkRequestProblem struct {
	Code    string
	Message string
}
