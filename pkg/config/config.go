// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads cloud-provider.yaml, the one configuration file of all components.
//
// Reading is several separate steps, each of which reports every problem it can find:
//
//	cfg, report := config.ReadFile(path, strict)    // Parse plus the files it names (auth.keyFile, caFile)
//	cfg.Environment, r = config.FromEnviron(lookup) // the environment variables of the contract
//	err := config.Complete(ctx, cfg, metadata)      // what is missing comes from instance metadata
//	report := config.Validate(cfg)                  // is everything there that a start needs?
//
// Parse itself does no I/O. All keys stand in one table (keys.go), which drives decoding, the search for the nearest
// known key, Describe, and docs/reference/config.md.
package config

//go:generate go run ./internal/gendoc ../../docs/reference/config.md

import (
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

// Config is the content of cloud-provider.yaml. Deprecated spellings are folded into the fields of their successors.
type Config struct {
	// UseInstancePrincipals authenticates as the compute instance that the process runs on.
	UseInstancePrincipals bool
	// UseWorkloadIdentity exchanges the pod's service-account token for a session token; see Environment.WorkloadIdentity.
	UseWorkloadIdentity bool
	// Compartment is the OCID of the cluster's compartment.
	Compartment string
	// VCN is the OCID of the cluster's virtual cloud network; empty means that it is found from the subnets.
	VCN string
	// RegionKey is what OCIDs carry as their region: a short key ("iad") in old regions, the name in newer ones.
	// Only storage components need it; it stays empty unless configured or read from instance metadata on the way.
	RegionKey string
	// ClusterID identifies the cluster in ownership marks. Empty means the UID of namespace kube-system.
	ClusterID string

	Auth                Auth
	LoadBalancer        LoadBalancer
	NetworkLoadBalancer NetworkLoadBalancer
	RateLimiter         RateLimiter
	Metrics             Metrics
	Tags                Tags
	NodeLabels          NodeLabels

	// Endpoints overrides the endpoint of single services, by the names that the key table lists under endpoints:
	// "compute" to "https://127.0.0.1:18443".
	Endpoints map[string]string
	// CABundle holds PEM certificates that replace the system's trust store in calls to OCI. CAFile is the path it was
	// read from, if any.
	CABundle string
	CAFile   string

	// Realm describes the realm of Auth.Region as instance metadata knows it, for regions newer than the SDK.
	// It is empty if metadata was not asked or speaks of another region.
	Realm Realm

	// Environment holds the environment variables of the contract. The caller sets it from FromEnviron.
	Environment Environment

	file    string // for messages and origins
	origins map[string]Origin
}

// Auth says who calls the OCI API, and where.
type Auth struct {
	Region      string // region name, key ("iad") or dotted domain
	Tenancy     string // OCID
	User        string // OCID
	Key         Secret // private key, PEM
	KeyFile     string // path of a file that holds the key
	Fingerprint string
	Passphrase  Secret // of an encrypted key
}

// LoadBalancer holds defaults of load balancers.
type LoadBalancer struct {
	// Disabled switches the LoadBalancer part of the provider off.
	Disabled bool
	// Subnet1 and Subnet2 are the OCIDs of the default subnets; Subnet1 is also that of network load balancers.
	Subnet1, Subnet2 string
	// SecurityListManagementMode is that of load balancers whose Services have no annotation about it. Empty means that
	// the file does not say, which leaves it at ModeAll.
	SecurityListManagementMode SecurityListMode
	// SecurityLists maps the OCID of a subnet to the OCID of the security list to edit for it, for either type of balancer.
	SecurityLists map[string]string
}

// NetworkLoadBalancer holds defaults of network load balancers.
type NetworkLoadBalancer struct {
	// SecurityListManagementMode is that of network load balancers whose Services have no annotation about it. Empty means
	// that the file does not say, which leaves it at ModeNone.
	SecurityListManagementMode SecurityListMode
}

// Subnets returns the default subnets that are set, in order.
func (l LoadBalancer) Subnets() []string {
	var subnets []string
	for _, s := range []string{l.Subnet1, l.Subnet2} {
		if s != "" {
			subnets = append(subnets, s)
		}
	}
	return subnets
}

// SecurityListMode says which security lists are kept in step with Services.
type SecurityListMode string

// The security list modes. Spelling is significant.
const (
	ModeAll      SecurityListMode = "All"      // load balancer subnets and node subnets
	ModeFrontend SecurityListMode = "Frontend" // load balancer subnets only
	ModeNone     SecurityListMode = "None"     // nothing
)

// Defaults of the client-side rate limiter, of the existing implementation.
const (
	DefaultQPS    float32 = 20 // requests per second
	DefaultBucket int     = 5  // requests
)

// RateLimiter holds the budget of calls to the OCI API. After Parse no field is zero unless Disabled is true.
type RateLimiter struct {
	QPSRead, QPSWrite       float32 // requests per second
	BucketRead, BucketWrite int     // burst, in requests
	Disabled                bool
}

// Limit is the budget of one direction: QPS in requests per second, Burst in requests.
type Limit struct {
	QPS      float32
	Burst    int
	Disabled bool
}

// Read is the budget of reads.
func (r RateLimiter) Read() Limit { return Limit{r.QPSRead, r.BucketRead, r.Disabled} }

// Write is the budget of creates, updates and deletes.
func (r RateLimiter) Write() Limit { return Limit{r.QPSWrite, r.BucketWrite, r.Disabled} }

// Metrics says where in OCI Monitoring durations are posted. It is off unless the file has a metrics block.
type Metrics struct {
	Enabled       bool
	CompartmentID string
	Namespace     string
	ResourceGroup string
	Prefix        string // prepended to each metric name without a separator
}

// Tags are the tags that new resources get.
type Tags struct {
	LoadBalancer TagSet
	Common       TagSet
	BlockVolume  TagSet
	FSS          TagSet
	Lustre       TagSet
}

// NodeLabels are the tags of instances that become labels of their nodes. No two of them become the same label.
type NodeLabels struct {
	DefinedTags  []taglabel.Tag
	FreeformTags []taglabel.Tag
}

// Tags returns the tags of both kinds.
func (n NodeLabels) Tags() []taglabel.Tag { return slices.Concat(n.DefinedTags, n.FreeformTags) }

// TagSet holds freeform tags and defined tags (namespace, key, value). It converts to and from oci.Tags.
type TagSet struct {
	Freeform map[string]string
	Defined  map[string]map[string]any
}

// IsEmpty says whether there is no tag at all.
func (t TagSet) IsEmpty() bool { return len(t.Freeform) == 0 && len(t.Defined) == 0 }

// Realm is a group of regions that share a domain.
type Realm struct {
	Key    string // "oc1"
	Domain string // "oraclecloud.com"
}

// Principal is a way to authenticate.
type Principal string

// The principals, in the order in which they take precedence.
const (
	InstancePrincipal Principal = "instance principal"
	WorkloadIdentity  Principal = "workload identity"
	UserPrincipal     Principal = "user principal"
)

// Principal returns who the configuration says is calling.
func (c *Config) Principal() Principal {
	switch {
	case c.UseInstancePrincipals:
		return InstancePrincipal
	case c.UseWorkloadIdentity:
		return WorkloadIdentity
	default:
		return UserPrincipal
	}
}
