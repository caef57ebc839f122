// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

// Releases that appear in the Since column.
const (
	sinceOld = "v1.35" // or earlier: keys of the existing implementation
	sinceNew = "v1.37"
)

// Key describes one key of cloud-provider.yaml.
type Key struct {
	Path        string // "auth.region"
	Type        string // for people: "bool", "OCID of a subnet"
	Default     string // for people; empty if there is none
	Description string
	Since       string // first release that knows the key
	Replacement string // the key to use instead, if this one is deprecated
	NotYet      bool   // accepted, and without effect in this release

	value value
}

// document is what one file holds: the configuration, and the deprecated spellings that fold moves into it.
type document struct {
	Config
	old deprecated
}

// deprecated holds the values of keys that have a successor.
type deprecated struct {
	authCompartment               string
	authRegionKey                 string
	authUseInstancePrincipals     bool
	authKeyPassphrase             Secret
	disableSecurityListManagement bool
}

// Keys returns the key table in the order of the reference.
func Keys() []Key {
	keys := slices.Concat(authKeys(), placeKeys(), loadBalancerKeys(), rateLimiterKeys(), metricsKeys(), tagKeys(), nodeLabelKeys(), connectionKeys())
	for i := range keys {
		if keys[i].Since == "" {
			keys[i].Since = sinceOld
		}
		if keys[i].Type == "" {
			keys[i].Type = keys[i].value.kind()
		}
	}
	return keys
}

func authKeys() []Key {
	return []Key{
		{
			Path: "useInstancePrincipals", Default: "false",
			Description: "Authenticate as the compute instance that the process runs on. `auth.region` and user credentials are then ignored.",
			value:       boolean(func(d *document) *bool { return &d.UseInstancePrincipals }),
		},
		{
			Path: "useWorkloadIdentity", Default: "false",
			Description: "Exchange the pod's service-account token for a session token. Needs `auth.region` and the `OCI_WORKLOAD_IDENTITY_*` environment variables. Excludes `useInstancePrincipals`.",
			value:       boolean(func(d *document) *bool { return &d.UseWorkloadIdentity }),
		},
		{
			Path: "auth.region", Default: "instance metadata",
			Description: "Region whose API is called: its name (`eu-frankfurt-1`) or key (`fra`). There is no built-in default.",
			value:       text(func(d *document) *string { return &d.Auth.Region }, oneWord),
		},
		{
			Path:        "auth.tenancy",
			Description: "Tenancy. Required for a user principal.",
			value:       ocid(func(d *document) *string { return &d.Auth.Tenancy }, "tenancy"),
		},
		{
			Path:        "auth.user",
			Description: "User who calls the API. Required for a user principal.",
			value:       ocid(func(d *document) *string { return &d.Auth.User }, "user"),
		},
		{
			Path:        "auth.key",
			Description: "Private API signing key of the user, in PEM form. A user principal requires this or `auth.keyFile`.",
			value:       secret(func(d *document) *Secret { return &d.Auth.Key }),
		},
		{
			Path: "auth.keyFile", Since: sinceNew,
			Description: "Path of a file that holds the private key, instead of `auth.key`. A relative path starts at the directory of the config file.",
			value:       text(func(d *document) *string { return &d.Auth.KeyFile }, path),
		},
		{
			Path:        "auth.fingerprint",
			Description: "Fingerprint of the key, as the console shows it. Required for a user principal.",
			value:       text(func(d *document) *string { return &d.Auth.Fingerprint }, fingerprint),
		},
		{
			Path:        "auth.passphrase",
			Description: "Passphrase of an encrypted private key.",
			value:       secret(func(d *document) *Secret { return &d.Auth.Passphrase }),
		},
		{
			Path: "auth.key_passphrase", Replacement: "auth.passphrase",
			Description: "Up to v1.35 the only spelling of the passphrase that took effect. Used if `auth.passphrase` is empty.",
			value:       secret(func(d *document) *Secret { return &d.old.authKeyPassphrase }),
		},
		{
			Path: "auth.useInstancePrincipals", Default: "false", Replacement: "useInstancePrincipals",
			Description: "`true` wins over the other spelling.",
			value:       boolean(func(d *document) *bool { return &d.old.authUseInstancePrincipals }),
		},
		{
			Path: "auth.compartment", Replacement: "compartment",
			Description: "Used if `compartment` is empty.",
			value:       ocid(func(d *document) *string { return &d.old.authCompartment }, "compartment", "tenancy"),
		},
		{
			Path: "auth.regionKey", Replacement: "regionKey",
			Description: "Used if `regionKey` is empty.",
			value:       text(func(d *document) *string { return &d.old.authRegionKey }, oneWord),
		},
	}
}

func placeKeys() []Key {
	return []Key{
		{
			Path: "compartment", Default: "instance metadata",
			Description: "Compartment of the cluster. Load balancers, network security groups and volumes are created here unless an annotation or parameter says otherwise; instances are looked up here by name.",
			value:       ocid(func(d *document) *string { return &d.Compartment }, "compartment", "tenancy"),
		},
		{
			Path: "vcn", Default: "that of `loadBalancer.subnet1`",
			Description: "Virtual cloud network of the cluster. Network security groups are created in it, and a node that is found by name must have a VNIC in it.",
			value:       ocid(func(d *document) *string { return &d.VCN }, "vcn"),
		},
		{
			Path: "regionKey", Default: "instance metadata, where it is asked",
			Description: "Region as it appears in OCIDs (`iad`, `eu-frankfurt-1`). Completes short volume identifiers; only storage components need it.",
			value:       text(func(d *document) *string { return &d.RegionKey }, oneWord),
		},
		{
			Path: "clusterId", Default: "UID of namespace `kube-system`", Since: sinceNew,
			Description: "Identity of the cluster in ownership marks (freeform tag `oci-k8s-cluster`). Must not change during the cluster's life. At most 256 characters.",
			value:       text(func(d *document) *string { return &d.ClusterID }, tagValue),
		},
	}
}

func loadBalancerKeys() []Key {
	return []Key{
		{
			Path: "loadBalancer.disabled", Default: "false",
			Description: "Switch load balancers off: Services of type LoadBalancer are left alone, and no permission for them is needed.",
			value:       boolean(func(d *document) *bool { return &d.LoadBalancer.Disabled }),
		},
		{
			Path:        "loadBalancer.subnet1",
			Description: "Default subnet: the first one of load balancers, the only one of network load balancers. A Service may name its own in an annotation; one without either gets an event.",
			value:       ocid(func(d *document) *string { return &d.LoadBalancer.Subnet1 }, "subnet"),
		},
		{
			Path:        "loadBalancer.subnet2",
			Description: "Default second subnet of load balancers, in another availability domain. Not needed if `subnet1` is regional.",
			value:       ocid(func(d *document) *string { return &d.LoadBalancer.Subnet2 }, "subnet"),
		},
		{
			Path: "loadBalancer.securityListManagementMode", Type: "`All`, `Frontend` or `None`",
			Default:     "`All`",
			Description: "Which security lists are kept in step with Services that have a load balancer: those of balancer and node subnets, of balancer subnets only, or none. An annotation of the Service outweighs it. Another mode closes nothing that is open. Up to v1.35 the key had no effect.",
			value:       text(func(d *document) *SecurityListMode { return &d.LoadBalancer.SecurityListManagementMode }, securityListMode),
		},
		{
			Path: "loadBalancer.disableSecurityListManagement", Default: "false", Replacement: "loadBalancer.securityListManagementMode",
			Description: "`true` means mode `None` if no mode is set.",
			value:       boolean(func(d *document) *bool { return &d.old.disableSecurityListManagement }),
		},
		{
			Path:        "loadBalancer.securityLists",
			Description: "The security list to edit for a subnet, of a balancer of either type or of nodes, where the oldest one of the subnet is not the right one. It must be attached to the subnet.",
			value:       ocidMap{func(d *document) *map[string]string { return &d.LoadBalancer.SecurityLists }, "subnet", "securitylist"},
		},
		{
			Path: "networkLoadBalancer.securityListManagementMode", Since: sinceNew, Type: "`All`, `Frontend` or `None`",
			Default:     "`None`",
			Description: "The same for Services that have a network load balancer.",
			value:       text(func(d *document) *SecurityListMode { return &d.NetworkLoadBalancer.SecurityListManagementMode }, securityListMode),
		},
	}
}

func rateLimiterKeys() []Key {
	return []Key{
		{
			Path: "rateLimiter.rateLimitQPSRead", Default: "20",
			Description: "Reads per second. 0 means the default.",
			value:       number(func(d *document) *float32 { return &d.RateLimiter.QPSRead }),
		},
		{
			Path: "rateLimiter.rateLimitBucketRead", Default: "5",
			Description: "Reads that may come at once. 0 means the default.",
			value:       count(func(d *document) *int { return &d.RateLimiter.BucketRead }),
		},
		{
			Path: "rateLimiter.rateLimitQPSWrite", Default: "20",
			Description: "Creates, updates and deletes per second. 0 means the default.",
			value:       number(func(d *document) *float32 { return &d.RateLimiter.QPSWrite }),
		},
		{
			Path: "rateLimiter.rateLimitBucketWrite", Default: "5",
			Description: "Creates, updates and deletes that may come at once. 0 means the default.",
			value:       count(func(d *document) *int { return &d.RateLimiter.BucketWrite }),
		},
		{
			Path: "rateLimiter.disableRateLimiter", Default: "false",
			Description: "Send calls without a client-side budget.",
			value:       boolean(func(d *document) *bool { return &d.RateLimiter.Disabled }),
		},
	}
}

func metricsKeys() []Key {
	return []Key{
		{
			Path: "metrics.compartmentID", NotYet: true,
			Description: "Compartment that durations are posted to in OCI Monitoring. Required if there is a `metrics` block.",
			value:       ocid(func(d *document) *string { return &d.Metrics.CompartmentID }, "compartment", "tenancy"),
		},
		{
			Path: "metrics.namespace", NotYet: true,
			Description: "Metric namespace. Required if there is a `metrics` block.",
			value:       text(func(d *document) *string { return &d.Metrics.Namespace }, nil),
		},
		{
			Path: "metrics.resourceGroup", NotYet: true,
			Description: "Resource group of the metrics. Required if there is a `metrics` block.",
			value:       text(func(d *document) *string { return &d.Metrics.ResourceGroup }, nil),
		},
		{
			Path: "metrics.prefix", NotYet: true,
			Description: "Prepended to each metric name, without a separator.",
			value:       text(func(d *document) *string { return &d.Metrics.Prefix }, nil),
		},
	}
}

func tagKeys() []Key {
	var keys []Key
	for _, group := range []struct {
		name, description string
		at                func(*document) *TagSet
	}{
		{"loadBalancer", "new load balancers and network load balancers; the tag annotations of a Service replace them", func(d *document) *TagSet { return &d.Tags.LoadBalancer }},
		{"common", "new block volumes, with `CPO_ENABLE_RESOURCE_ATTRIBUTION`; the defined ones also of instances of OpenShift clusters", func(d *document) *TagSet { return &d.Tags.Common }},
		{"blockVolume", "new block volumes", func(d *document) *TagSet { return &d.Tags.BlockVolume }},
		{"fss", "new file systems and mount targets", func(d *document) *TagSet { return &d.Tags.FSS }},
		{"lustre", "new Lustre file systems", func(d *document) *TagSet { return &d.Tags.Lustre }},
	} {
		at := group.at
		keys = append(keys,
			Key{
				Path:        "tags." + group.name + ".freeform",
				Description: "Freeform tags of " + group.description + ".",
				value:       freeformTags{func(d *document) *map[string]string { return &at(d).Freeform }},
			},
			Key{
				Path:        "tags." + group.name + ".defined",
				Description: "Defined tags of " + group.description + ".",
				value:       definedTags{func(d *document) *map[string]map[string]any { return &at(d).Defined }},
			})
	}
	return keys
}

func nodeLabelKeys() []Key {
	const becomes = " of instances that become labels of their nodes: `oci.oraclecloud.com/"
	return []Key{
		{
			Path: "nodeLabels.definedTags", Since: sinceNew,
			Description: "Defined tags, as `namespace.key`," + becomes + "<namespace>.<key>`. See [nodes.md](../nodes.md#tags-as-labels).",
			value:       tagKeyList{"list of `namespace.key`", taglabel.Defined, func(d *document) *[]taglabel.Tag { return &d.NodeLabels.DefinedTags }},
		},
		{
			Path: "nodeLabels.freeformTags", Since: sinceNew,
			Description: "Keys of freeform tags" + becomes + "<key>`.",
			value:       tagKeyList{"list of keys", taglabel.Freeform, func(d *document) *[]taglabel.Tag { return &d.NodeLabels.FreeformTags }},
		},
	}
}

func connectionKeys() []Key {
	keys := []Key{
		{
			Path: "caBundle", Since: sinceNew, Default: "trust store of the system",
			Description: "Certificates that replace the trust store in calls to the OCI API.",
			value:       certificates{},
		},
		{
			Path: "caFile", Since: sinceNew,
			Description: "Path of a file with such certificates, instead of `caBundle`. A relative path starts at the directory of the config file.",
			value:       text(func(d *document) *string { return &d.CAFile }, path),
		},
	}
	for _, service := range []struct{ name, title string }{
		{"blockstorage", "Block Volume"},
		{"compute", "Compute"},
		{"virtualnetwork", "Networking"},
		{"identity", "Identity"},
		{"loadbalancer", "Load Balancing"},
		{"networkloadbalancer", "Network Load Balancing"},
	} {
		keys = append(keys, Key{
			Path: "endpoints." + service.name, Since: sinceNew, Default: "that of the region",
			Description: "Endpoint of the " + service.title + " API, scheme and host only: `https://iaas.example.com`.",
			value:       endpoint{service.name},
		})
	}
	return keys
}
