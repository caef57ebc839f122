// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func (l *netLab) attach(t *testing.T, d core.CreateVnicDetails) (core.VnicAttachment, error) {
	t.Helper()
	if d.SubnetId == nil {
		d.SubnetId = &l.subnet
	}
	made, err := l.compute.AttachVnic(t.Context(), core.AttachVnicRequest{
		AttachVnicDetails: core.AttachVnicDetails{InstanceId: &l.instance, CreateVnicDetails: &d},
	})
	return made.VnicAttachment, err
}

func (l *netLab) attachment(t *testing.T, id *string) core.VnicAttachment {
	t.Helper()
	return need(l.compute.GetVnicAttachment(t.Context(), core.GetVnicAttachmentRequest{VnicAttachmentId: id}))(t).VnicAttachment
}

// TestAttachVNIC follows a secondary VNIC from its attachment to its end.
func TestAttachVNIC(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx := t.Context()
		group := l.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "pods"})
		made := need(l.attach(t, core.CreateVnicDetails{
			DisplayName: common.String("pods"), HostnameLabel: common.String("pods-1"), NsgIds: []string{group}, SkipSourceDestCheck: common.Bool(true),
		}))(t)
		if made.LifecycleState != core.VnicAttachmentLifecycleStateAttaching || made.VnicId != nil {
			t.Errorf("new attachment %v", made)
		}
		_, err := l.compute.DetachVnic(ctx, core.DetachVnicRequest{VnicAttachmentId: made.Id})
		refused(t, err, http.StatusConflict, "IncorrectState")
		aMinute()
		made = l.attachment(t, made.Id)
		if made.LifecycleState != core.VnicAttachmentLifecycleStateAttached || made.VnicId == nil {
			t.Fatalf("attachment after a minute %v", made)
		}
		vnic := need(l.network.GetVnic(ctx, core.GetVnicRequest{VnicId: made.VnicId}))(t)
		if *vnic.IsPrimary || !*vnic.SkipSourceDestCheck || vnic.NsgIds[0] != group || *vnic.HostnameLabel != "pods-1" || vnic.LifecycleState != core.VnicLifecycleStateAvailable {
			t.Errorf("VNIC %v", vnic.Vnic)
		}
		if vnic.PublicIp == nil || !strings.HasPrefix(*vnic.PublicIp, "198.18.") {
			t.Errorf("a VNIC in a public subnet has a public address by default, not %v", vnic.PublicIp)
		}
		_, err = l.attach(t, core.CreateVnicDetails{})
		refused(t, err, http.StatusBadRequest, "LimitExceeded") // two OCPUs have two VNICs
		need(l.compute.DetachVnic(ctx, core.DetachVnicRequest{VnicAttachmentId: made.Id}))(t)
		if state := l.attachment(t, made.Id).LifecycleState; state != core.VnicAttachmentLifecycleStateDetaching {
			t.Errorf("an attachment that is detached is %s", state)
		}
		aMinute()
		if state := l.attachment(t, made.Id).LifecycleState; state != core.VnicAttachmentLifecycleStateDetached {
			t.Errorf("attachment a minute later: %s", state)
		}
		time.Sleep(10 * time.Minute)
		_, err = l.network.GetVnic(ctx, core.GetVnicRequest{VnicId: made.VnicId})
		refused(t, err, http.StatusNotFound, "NotAuthorizedOrNotFound")
		time.Sleep(time.Hour)
		if n := len(l.region.VNICAttachments()); n != 1 {
			t.Errorf("%d attachments are left", n)
		}
		if n := len(l.region.PublicIPs()); n != 0 {
			t.Errorf("%d public addresses are left", n)
		}
	})
}

func TestAttachVNICErrors(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		private := l.region.AddSubnet(ocisim.Subnet{Name: "private", CIDR: "10.0.20.0/24", Private: true})
		elsewhere := l.region.AddSubnet(ocisim.Subnet{Name: "ad2", CIDR: "10.0.21.0/24", AvailabilityDomain: "Uocm:US-ASHBURN-AD-2"})
		otherVCN := l.region.AddVCN(ocisim.VCN{Name: "other"})
		foreign := l.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "foreign", VCN: otherVCN})
		for name, d := range map[string]core.CreateVnicDetails{
			"public in a private subnet": {SubnetId: &private, AssignPublicIp: common.Bool(true)},
			"subnet of another domain":   {SubnetId: &elsewhere},
			"IPv6 without a prefix":      {AssignIpv6Ip: common.Bool(true)},
			"group of another VCN":       {NsgIds: []string{foreign}},
			"bad host name":              {HostnameLabel: common.String("a_b")},
			"address outside":            {PrivateIp: common.String("10.0.11.9")},
		} {
			_, err := l.attach(t, d)
			refusedFor(t, name, err, http.StatusBadRequest, "InvalidParameter")
		}
		for name, d := range map[string]core.CreateVnicDetails{
			"address in use":   {PrivateIp: l.region.PrivateIPs()[0].IpAddress},
			"host name in use": {HostnameLabel: common.String("NODE-1")},
		} {
			_, err := l.attach(t, d)
			refusedFor(t, name, err, http.StatusConflict, "Conflict")
		}
		_, err := l.compute.DetachVnic(t.Context(), core.DetachVnicRequest{VnicAttachmentId: l.region.VNICAttachments()[0].Id})
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		if err := l.region.Foreign().StopInstance(l.instance); err != nil {
			t.Fatal(err)
		}
		_, err = l.attach(t, core.CreateVnicDetails{})
		refused(t, err, http.StatusConflict, "IncorrectState")
		if n := len(l.region.VNICs()); n != 1 {
			t.Errorf("refused attachments left %d VNICs", n-1)
		}
	})
}

func TestUpdateVNIC(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx := t.Context()
		id := l.region.InstanceVNICs(l.instance)[0].Id
		group := l.region.AddSecurityGroup(ocisim.SecurityGroup{Name: "g"})
		table := l.region.AddRouteTable(ocisim.RouteTable{Name: "own"})
		update := func(d core.UpdateVnicDetails) (core.Vnic, error) {
			got, err := l.network.UpdateVnic(ctx, core.UpdateVnicRequest{VnicId: id, UpdateVnicDetails: d})
			return got.Vnic, err
		}
		v := need(update(core.UpdateVnicDetails{
			NsgIds: []string{group}, HostnameLabel: common.String("renamed"), SkipSourceDestCheck: common.Bool(true),
			RouteTableId: &table, FreeformTags: map[string]string{"a": "b"},
		}))(t)
		if v.NsgIds[0] != group || *v.HostnameLabel != "renamed" || !*v.SkipSourceDestCheck || *v.RouteTableId != table || v.FreeformTags["a"] != "b" {
			t.Errorf("updated VNIC %v", v)
		}
		if ip := l.region.PrivateIPs()[0]; *ip.HostnameLabel != "renamed" {
			t.Errorf("the primary private IP keeps the label %v", ip.HostnameLabel)
		}
		_, err := l.network.DeleteRouteTable(ctx, core.DeleteRouteTableRequest{RtId: &table})
		refused(t, err, http.StatusConflict, "Conflict")
		_, err = l.network.DeleteNetworkSecurityGroup(ctx, core.DeleteNetworkSecurityGroupRequest{NetworkSecurityGroupId: &group})
		refused(t, err, http.StatusPreconditionFailed, "PreconditionFailed")
		// What a request does not name stays; an empty list and empty texts take away.
		v = need(update(core.UpdateVnicDetails{NsgIds: []string{}, RouteTableId: common.String("")}))(t)
		if len(v.NsgIds) != 0 || v.RouteTableId != nil || *v.HostnameLabel != "renamed" || !*v.SkipSourceDestCheck {
			t.Errorf("updated VNIC %v", v)
		}
		_, err = update(core.UpdateVnicDetails{NsgIds: make([]string, 6)})
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
	})
}

// TestAddressBlocks gives VNICs whole blocks, as pods need them, and finds every collision.
func TestAddressBlocks(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx := t.Context()
		l.region.AddSubnet(ocisim.Subnet{Name: "dual", CIDR: "10.0.32.0/24", IPv6CIDR: "2001:db8::/64"})
		node := l.region.AddInstance(ocisim.Instance{Name: "dual", VNIC: ocisim.VNIC{Subnet: "dual", IPv6: []string{ocisim.Auto}}})
		vnic := l.region.InstanceVNICs(node)[0].Id
		create := func(address string, bits int) (core.PrivateIp, error) {
			d := core.CreatePrivateIpDetails{VnicId: vnic, CidrPrefixLength: &bits}
			if address != "" {
				d.IpAddress = &address
			}
			got, err := l.network.CreatePrivateIp(ctx, core.CreatePrivateIpRequest{CreatePrivateIpDetails: d})
			return got.PrivateIp, err
		}
		block := need(create("10.0.32.16", 28))(t)
		if *block.IpAddress != "10.0.32.16" || *block.CidrPrefixLength != 28 || *block.IsPrimary {
			t.Errorf("block %v", block)
		}
		_, err := create("10.0.32.20", 32)
		refused(t, err, http.StatusConflict, "Conflict")
		_, err = create("10.0.32.0", 27)
		refused(t, err, http.StatusBadRequest, "InvalidParameter") // the first addresses are the network's
		_, err = create("10.0.32.24", 29)
		refused(t, err, http.StatusConflict, "Conflict")
		_, err = create("10.0.32.40", 28)
		refused(t, err, http.StatusBadRequest, "InvalidParameter") // not aligned
		_, err = create("10.0.33.0", 28)
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		rule := func(allow bool) {
			l.region.SetBehaviour(func(b *ocisim.Behaviour) {
				r := b.Rulings[ocisim.AddressBlockNeedsAddress]
				r.Allow = allow
				b.Rulings[ocisim.AddressBlockNeedsAddress] = r
			})
		}
		rule(false)
		_, err = create("", 28)
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		rule(true)
		if got := need(create("", 28))(t); *got.IpAddress != "10.0.32.32" {
			t.Errorf("the next free block is %s", *got.IpAddress)
		}
		// Single addresses step over the blocks.
		for range 20 {
			single := need(create("", 32))(t)
			if single.CidrPrefixLength != nil || inAny(*single.IpAddress, "10.0.32.16/28", "10.0.32.32/28") {
				t.Fatalf("single address %v", single)
			}
		}
		need(l.network.DeletePrivateIp(ctx, core.DeletePrivateIpRequest{PrivateIpId: block.Id}))(t)
		need(create("10.0.32.24", 29))(t)
		checkSixthBlock(t, l, vnic)
	})
}

func checkSixthBlock(t *testing.T, l *netLab, vnic *string) {
	t.Helper()
	six := need(l.network.CreateIpv6(t.Context(), core.CreateIpv6Request{CreateIpv6Details: core.CreateIpv6Details{VnicId: vnic, CidrPrefixLength: common.Int(80)}}))(t)
	if *six.IpAddress != "2001:db8:0:0:1::" || *six.CidrPrefixLength != 80 {
		t.Errorf("IPv6 block %v", six.Ipv6)
	}
	_, err := l.network.CreateIpv6(t.Context(), core.CreateIpv6Request{CreateIpv6Details: core.CreateIpv6Details{VnicId: vnic, IpAddress: common.String("2001:db8::1:0:0:7")}})
	refused(t, err, http.StatusConflict, "Conflict")
	got := need(l.network.GetVnic(t.Context(), core.GetVnicRequest{VnicId: vnic}))(t)
	if len(got.Ipv6Addresses) != 1 {
		t.Errorf("addresses of the VNIC %v", got.Ipv6Addresses)
	}
}

// TestMovePrivateIP moves a secondary address, which is what fail-over of a virtual address does.
func TestMovePrivateIP(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx := t.Context()
		first := l.region.InstanceVNICs(l.instance)[0].Id
		second := l.region.InstanceVNICs(l.region.AddInstance(ocisim.Instance{Name: "node-2", VNIC: ocisim.VNIC{Subnet: "nodes"}}))[0].Id
		ip := need(l.network.CreatePrivateIp(ctx, core.CreatePrivateIpRequest{CreatePrivateIpDetails: core.CreatePrivateIpDetails{VnicId: first}}))(t)
		update := func(id *string, d core.UpdatePrivateIpDetails) (core.PrivateIp, error) {
			got, err := l.network.UpdatePrivateIp(ctx, core.UpdatePrivateIpRequest{PrivateIpId: id, UpdatePrivateIpDetails: d})
			return got.PrivateIp, err
		}
		if got := need(update(ip.Id, core.UpdatePrivateIpDetails{VnicId: second}))(t); *got.VnicId != *second || *got.IpAddress != *ip.IpAddress {
			t.Errorf("moved %v", got)
		}
		for state, n := range map[string]int{"ASSIGNED": 2, "AVAILABLE": 0} {
			list := need(l.network.ListPrivateIps(ctx, core.ListPrivateIpsRequest{VnicId: second, IpState: &state}))(t)
			if len(list.Items) != n {
				t.Errorf("%d addresses are %s, want %d", len(list.Items), state, n)
			}
		}
		primary := l.region.PrivateIPs()[0].Id
		_, err := update(primary, core.UpdatePrivateIpDetails{VnicId: second})
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		l.region.AddSubnet(ocisim.Subnet{Name: "far", CIDR: "10.0.30.0/24"})
		far := l.region.InstanceVNICs(l.region.AddInstance(ocisim.Instance{Name: "far", VNIC: ocisim.VNIC{Subnet: "far"}}))[0].Id
		_, err = update(ip.Id, core.UpdatePrivateIpDetails{VnicId: far})
		refused(t, err, http.StatusBadRequest, "InvalidParameter")
		for range 31 {
			_, err = l.network.CreatePrivateIp(ctx, core.CreatePrivateIpRequest{CreatePrivateIpDetails: core.CreatePrivateIpDetails{VnicId: second}})
		}
		refused(t, err, http.StatusBadRequest, "LimitExceeded")
	})
}

// TestLaunchInstance follows an instance from its launch to its termination.
func TestLaunchInstance(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		ctx := t.Context()
		launch := func(change func(*core.LaunchInstanceDetails)) (core.Instance, error) {
			d := core.LaunchInstanceDetails{
				AvailabilityDomain: common.String("Uocm:US-ASHBURN-AD-2"), CompartmentId: &l.compartment, DisplayName: common.String("node-7"),
				Shape: common.String("VM.Standard.E5.Flex"), ShapeConfig: &core.LaunchInstanceShapeConfigDetails{Ocpus: common.Float32(4)},
				SourceDetails:     core.InstanceSourceViaImageDetails{ImageId: common.String("ocid1.image.oc1.iad.any")},
				CreateVnicDetails: &core.CreateVnicDetails{SubnetId: &l.subnet, AssignPublicIp: common.Bool(false), HostnameLabel: common.String("node-7")},
				Metadata:          map[string]string{"user_data": "eA=="},
			}
			change(&d)
			got, err := l.compute.LaunchInstance(ctx, core.LaunchInstanceRequest{LaunchInstanceDetails: d})
			return got.Instance, err
		}
		v := need(launch(func(*core.LaunchInstanceDetails) {}))(t)
		if v.LifecycleState != core.InstanceLifecycleStateProvisioning || *v.ShapeConfig.MemoryInGBs != 64 || v.Metadata["user_data"] == "" {
			t.Errorf("new instance %v", v)
		}
		time.Sleep(2 * time.Minute)
		nics := l.region.InstanceVNICs(*v.Id)
		if got, _ := l.region.Instance(*v.Id); got.LifecycleState != core.InstanceLifecycleStateRunning || len(nics) != 1 || !*nics[0].IsPrimary || nics[0].PublicIp != nil {
			t.Errorf("instance after two minutes %v, VNICs %v", got, nics)
		}
		boot := l.region.BootVolumeAttachments()
		if a := boot[len(boot)-1]; *a.InstanceId != *v.Id || a.LifecycleState != core.BootVolumeAttachmentLifecycleStateAttached {
			t.Errorf("boot volume attachment %v", a)
		}
		_, err := launch(func(d *core.LaunchInstanceDetails) {
			d.SourceDetails = core.InstanceSourceViaBootVolumeDetails{BootVolumeId: boot[len(boot)-1].BootVolumeId}
		})
		refused(t, err, http.StatusConflict, "Conflict") // it is the first one's
		for name, change := range map[string]func(*core.LaunchInstanceDetails){
			"small boot volume": func(d *core.LaunchInstanceDetails) {
				d.SourceDetails = core.InstanceSourceViaImageDetails{ImageId: common.String("ocid1.image.oc1.iad.any"), BootVolumeSizeInGBs: common.Int64(40)}
			},
			"unknown domain":       func(d *core.LaunchInstanceDetails) { d.AvailabilityDomain = common.String("AD-9") },
			"unknown shape":        func(d *core.LaunchInstanceDetails) { d.Shape = common.String("Huge") },
			"flexible, no size":    func(d *core.LaunchInstanceDetails) { d.ShapeConfig = nil },
			"unknown fault domain": func(d *core.LaunchInstanceDetails) { d.FaultDomain = common.String("FAULT-DOMAIN-9") },
		} {
			_, err := launch(change)
			refusedFor(t, name, err, http.StatusBadRequest, "InvalidParameter")
		}
		_, err = launch(func(*core.LaunchInstanceDetails) {})
		refused(t, err, http.StatusConflict, "Conflict") // the host name
		_, err = launch(func(d *core.LaunchInstanceDetails) { d.CreateVnicDetails = nil })
		refused(t, err, http.StatusBadRequest, "MissingParameter")
		if n := len(l.region.Instances()); n != 2 {
			t.Errorf("refused launches left %d instances", n-2)
		}
		need(l.compute.TerminateInstance(ctx, core.TerminateInstanceRequest{InstanceId: v.Id, PreserveBootVolume: common.Bool(true)}))(t)
		time.Sleep(10 * time.Minute)
		again := need(launch(func(d *core.LaunchInstanceDetails) {
			d.SourceDetails = core.InstanceSourceViaBootVolumeDetails{BootVolumeId: boot[len(boot)-1].BootVolumeId}
		}))(t)
		need(l.compute.TerminateInstance(ctx, core.TerminateInstanceRequest{InstanceId: again.Id}))(t)
		time.Sleep(10 * time.Minute)
		if n := len(l.region.VNICs()); n != 1 {
			t.Errorf("a terminated instance left %d VNICs", n-1)
		}
	})
}

// TestTerminateWhileLaunching ends in the termination: what was to complete the launch comes too late.
func TestTerminateWhileLaunching(t *testing.T) {
	onVirtualNetwork(t, ocisim.Options{}, func(t *testing.T, l *netLab) {
		made := need(l.compute.LaunchInstance(t.Context(), core.LaunchInstanceRequest{LaunchInstanceDetails: core.LaunchInstanceDetails{
			AvailabilityDomain: common.String("Uocm:US-ASHBURN-AD-1"), CompartmentId: &l.compartment, Shape: common.String("VM.Standard2.1"),
			ImageId: common.String("ocid1.image.oc1.iad.any"), SubnetId: &l.subnet,
		}}))(t)
		need(l.compute.TerminateInstance(t.Context(), core.TerminateInstanceRequest{InstanceId: made.Id}))(t)
		time.Sleep(30 * time.Minute)
		if got, _ := l.region.Instance(*made.Id); got.LifecycleState != core.InstanceLifecycleStateTerminated {
			t.Errorf("the instance is %s", got.LifecycleState)
		}
		if n := len(l.region.VNICs()); n != 1 {
			t.Errorf("%d VNICs are left", n-1)
		}
	})
}
