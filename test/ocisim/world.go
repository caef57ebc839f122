// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "errors"

// World is what a region starts with. Its JSON tags make it a seed file. References ("compartment", "vcn",
// "subnet", …) are OCIDs or names; whatever is empty gets a sensible value, identifiers included.
type World struct {
	Compartments   []Compartment   `json:"compartments,omitempty"`
	TagNamespaces  []string        `json:"tagNamespaces,omitempty"` // that defined tags may use
	VCNs           []VCN           `json:"vcns,omitempty"`
	Gateways       []Gateway       `json:"gateways,omitempty"`
	RouteTables    []RouteTable    `json:"routeTables,omitempty"`
	SecurityLists  []SecurityList  `json:"securityLists,omitempty"`
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	Subnets        []Subnet        `json:"subnets,omitempty"`
	PublicIPs      []PublicIP      `json:"publicIPs,omitempty"` // reserved
	Instances      []Instance      `json:"instances,omitempty"`

	LoadBalancers        []LoadBalancer        `json:"loadBalancers,omitempty"`
	NetworkLoadBalancers []NetworkLoadBalancer `json:"networkLoadBalancers,omitempty"`
	FileSystems          []FileSystem          `json:"fileSystems,omitempty"`
	MountTargets         []MountTarget         `json:"mountTargets,omitempty"`
	Exports              []Export              `json:"exports,omitempty"`
	Volumes              []Volume              `json:"volumes,omitempty"`
	VolumeBackups        []VolumeBackup        `json:"volumeBackups,omitempty"`
	VolumeAttachments    []VolumeAttachment    `json:"volumeAttachments,omitempty"`
	LustreFileSystems    []LustreFileSystem    `json:"lustreFileSystems,omitempty"`
	Certificates         []Certificate         `json:"certificates,omitempty"`
	CABundles            []CABundle            `json:"caBundles,omitempty"`
}

// Tags are the tags of a seeded resource.
type Tags struct {
	Freeform map[string]string                 `json:"freeformTags,omitempty"`
	Defined  map[string]map[string]interface{} `json:"definedTags,omitempty"`
}

// Compartment of the tenancy.
type Compartment struct {
	ID     string `json:"id,omitempty"`
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"` // default: the tenancy
}

// VCN is a virtual cloud network. It comes with a default security list, a default route table and default DHCP
// options.
type VCN struct {
	ID          string   `json:"id,omitempty"`
	Compartment string   `json:"compartment,omitempty"` // default: the first seeded compartment, else the tenancy
	Name        string   `json:"name,omitempty"`
	CIDRs       []string `json:"cidrs,omitempty"` // default 10.0.0.0/16
	IPv6CIDRs   []string `json:"ipv6Cidrs,omitempty"`
	DNSLabel    string   `json:"dnsLabel,omitempty"`
	Routes      []Route  `json:"routes,omitempty"` // of the default route table

	Tags `json:",inline"`
}

// Subnet of a VCN.
type Subnet struct {
	ID                 string   `json:"id,omitempty"`
	Compartment        string   `json:"compartment,omitempty"` // default: that of the VCN
	VCN                string   `json:"vcn,omitempty"`         // default: the first
	Name               string   `json:"name,omitempty"`
	CIDR               string   `json:"cidr"`
	IPv6CIDR           string   `json:"ipv6Cidr,omitempty"`
	AvailabilityDomain string   `json:"availabilityDomain,omitempty"` // empty: regional
	Private            bool     `json:"private,omitempty"`            // no public addresses on its VNICs
	DNSLabel           string   `json:"dnsLabel,omitempty"`
	SecurityLists      []string `json:"securityLists,omitempty"` // default: the VCN's default list
	RouteTable         string   `json:"routeTable,omitempty"`    // default: the VCN's default table

	Tags `json:",inline"`
}

// SecurityList of a VCN.
type SecurityList struct {
	ID          string         `json:"id,omitempty"`
	Compartment string         `json:"compartment,omitempty"` // default: that of the VCN
	VCN         string         `json:"vcn,omitempty"`         // default: the first
	Name        string         `json:"name,omitempty"`
	Ingress     []SecurityRule `json:"ingress,omitempty"`
	Egress      []SecurityRule `json:"egress,omitempty"`

	Tags `json:",inline"`
}

// SecurityGroup is a network security group with its rules.
type SecurityGroup struct {
	ID          string         `json:"id,omitempty"`
	Compartment string         `json:"compartment,omitempty"` // default: that of the VCN
	VCN         string         `json:"vcn,omitempty"`         // default: the first
	Name        string         `json:"name,omitempty"`
	Ingress     []SecurityRule `json:"ingress,omitempty"`
	Egress      []SecurityRule `json:"egress,omitempty"`

	Tags `json:",inline"`
}

// SecurityRule of a list or a group.
type SecurityRule struct {
	Protocol    string `json:"protocol,omitempty"`    // tcp, udp, icmp, icmpv6, a number; default all
	Peer        string `json:"peer,omitempty"`        // CIDR, service name, or group (OCID or name); default 0.0.0.0/0
	Ports       string `json:"ports,omitempty"`       // destination: "443" or "30000-32767"
	SourcePorts string `json:"sourcePorts,omitempty"` // same form
	ICMPType    *int   `json:"icmpType,omitempty"`
	ICMPCode    *int   `json:"icmpCode,omitempty"`
	Stateless   bool   `json:"stateless,omitempty"`
	Description string `json:"description,omitempty"`
}

// PublicIP is a reserved public address.
type PublicIP struct {
	ID          string `json:"id,omitempty"`
	Compartment string `json:"compartment,omitempty"`
	Name        string `json:"name,omitempty"`
	Address     string `json:"address,omitempty"`

	Tags `json:",inline"`
}

// Auto as an address means any free one.
const Auto = "auto"

// Instance with its VNICs. Count makes that many equal ones; a %d in Name and Hostname becomes their number, from 1.
type Instance struct {
	ID                 string            `json:"id,omitempty"`
	Compartment        string            `json:"compartment,omitempty"`
	Name               string            `json:"name,omitempty"`
	Count              int               `json:"count,omitempty"`
	Shape              string            `json:"shape,omitempty"`              // default VM.Standard.E5.Flex
	AvailabilityDomain string            `json:"availabilityDomain,omitempty"` // default: in turn
	FaultDomain        string            `json:"faultDomain,omitempty"`        // default: in turn
	State              string            `json:"state,omitempty"`              // default RUNNING
	Image              string            `json:"image,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
	BootVolumeGBs      int64             `json:"bootVolumeGBs,omitempty"` // default 47; negative: no boot volume

	VNIC `json:",inline"` // the primary one; none without Subnet
	// Secondary VNICs, attached in this order.
	VNICs []VNIC `json:"vnics,omitempty"`

	Tags `json:",inline"`
}

// VNIC of an instance.
type VNIC struct {
	VNICID         string   `json:"vnicId,omitempty"`
	Subnet         string   `json:"subnet,omitempty"`
	PrivateIP      string   `json:"privateIp,omitempty"` // default: the next free one
	PublicIP       string   `json:"publicIp,omitempty"`  // ephemeral: an address or "auto"; default none
	IPv6           []string `json:"ipv6,omitempty"`      // addresses or "auto"
	Hostname       string   `json:"hostname,omitempty"`  // label; default: the instance's name if it is one, "-" for none
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// SkipSourceCheck lets the VNIC forward what is not meant for it, as targets of routes must.
	SkipSourceCheck bool `json:"skipSourceDestCheck,omitempty"`
}

// Seed adds a world. It stops at the first error; what was added before stays.
func (r *Region) Seed(w World) error {
	s := newSeeder(r.lock())
	defer r.mu.Unlock()
	for _, namespace := range w.TagNamespaces {
		s.cl.tagNamespaces[namespace] = true
	}
	return firstError(
		each(w.Compartments, s.compartment),
		each(w.VCNs, s.vcn),
		each(w.Gateways, s.gateway),
		each(w.RouteTables, s.routeTable),
		each(w.SecurityLists, s.securityList),
		each(w.SecurityGroups, s.securityGroup),
		each(w.Subnets, s.subnet),
		each(w.PublicIPs, s.publicIP),
		each(w.Instances, s.instances),
		each(w.LoadBalancers, s.loadBalancers),
		each(w.NetworkLoadBalancers, s.networkLoadBalancers),
		s.finish,
		each(w.FileSystems, s.fileSystem),
		each(w.MountTargets, s.mountTarget),
		each(w.Exports, s.export),
		each(w.Volumes, s.volumes),
		each(w.VolumeBackups, s.volumeBackup),
		each(w.VolumeAttachments, s.volumeAttachment),
		each(w.LustreFileSystems, s.lustreFileSystem),
		each(w.Certificates, s.certificate),
		each(w.CABundles, s.caBundle),
	)
}

// each makes a step of every element of a list.
func each[T any](list []T, add func(T) (string, error)) func() error {
	return func() error {
		for _, element := range list {
			if _, err := add(element); err != nil {
				return err
			}
		}
		return nil
	}
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// add is what the Add helpers share. A world that cannot be is a mistake of the test, so it panics.
func add[T any](r *Region, element T, how func(seeder, T) (string, error)) string {
	cl := r.lock()
	defer r.mu.Unlock()
	s := newSeeder(cl)
	id, err := how(s, element)
	if err = errors.Join(err, s.finish()); err != nil {
		panic("ocisim: " + err.Error())
	}
	return id
}

// AddCompartment adds a compartment and returns its OCID. Like all Add methods it panics when the region cannot have
// such a thing; Seed returns errors instead.
func (r *Region) AddCompartment(c Compartment) string { return add(r, c, seeder.compartment) }

// AddVCN adds a VCN and returns its OCID.
func (r *Region) AddVCN(v VCN) string { return add(r, v, seeder.vcn) }

// AddSubnet adds a subnet and returns its OCID.
func (r *Region) AddSubnet(s Subnet) string { return add(r, s, seeder.subnet) }

// AddGateway adds a gateway and returns its OCID.
func (r *Region) AddGateway(g Gateway) string { return add(r, g, seeder.gateway) }

// AddRouteTable adds a route table and returns its OCID.
func (r *Region) AddRouteTable(t RouteTable) string { return add(r, t, seeder.routeTable) }

// AddSecurityList adds a security list and returns its OCID.
func (r *Region) AddSecurityList(l SecurityList) string { return add(r, l, seeder.securityList) }

// AddSecurityGroup adds a network security group and returns its OCID.
func (r *Region) AddSecurityGroup(g SecurityGroup) string { return add(r, g, seeder.securityGroup) }

// AddPublicIP adds a reserved public address and returns its OCID.
func (r *Region) AddPublicIP(p PublicIP) string { return add(r, p, seeder.publicIP) }

// AddInstance adds an instance, or Count of them, and returns the OCID of the last.
func (r *Region) AddInstance(i Instance) string { return add(r, i, seeder.instances) }

// AddTagNamespace lets defined tags use a namespace.
func (r *Region) AddTagNamespace(name string) {
	cl := r.lock()
	defer r.mu.Unlock()
	cl.tagNamespaces[name] = true
}
