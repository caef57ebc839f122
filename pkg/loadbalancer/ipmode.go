// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// IPModeUpdater is a Cloud whose live balancers can become dual stack, and single stack again.
type IPModeUpdater interface {
	UpdateIPMode(ctx context.Context, id, mode, assignedIPv6, etag string) (workRequestID string, err error)
}

// subnetSettledAge is how old the knowledge about the subnet of a live balancer may be where the Service has asked for a
// family that it does not have already at the last sync: an unchanged Service costs one read, not two.
const subnetSettledAge = time.Hour

// familiesOf is the record of the families that a Service asks for; empty for IPv4, which needs none.
func familiesOf(svc *v1.Service) string {
	v4, v6 := wantedFamilies(svc)
	switch {
	case v4 && v6:
		return string(v1.IPv4Protocol) + "," + string(v1.IPv6Protocol)
	case v6:
		return string(v1.IPv6Protocol)
	}
	return ""
}

// liveFacts reads what an update needs to know: the subnets, if the balancer lacks a family that the Service asks for.
func (op *operation) liveFacts(ctx context.Context, live *oci.Balancer) (Facts, error) {
	facts := Facts{Live: live}
	v4, v6 := wantedFamilies(op.svc)
	if missingFamily(v4, v6, balancerFamilies(live)) == "" {
		return facts, nil
	}
	age := op.m.cfg.SubnetMaxAge
	known := lastApplied(op.svc).Families == familiesOf(op.svc)
	if known {
		age = subnetSettledAge
	}
	for _, id := range live.SubnetIDs {
		subnet, _, err := op.m.subnets.get(ctx, id, age)
		switch {
		case err != nil && known:
			op.log.Error(err, "Could not find out which address families the subnet of a live balancer has", "subnet", id)
			return Facts{Live: live}, nil
		case err != nil:
			return facts, op.refuse("read subnet "+id, live.Kind, err)
		}
		facts.Subnets = append(facts.Subnets, subnet)
	}
	return facts, nil
}

// grow makes an NLB dual stack, before anything is made that needs it.
func (d *differ) grow() {
	d.grown = -1
	if d.changesMode() && d.want.IPMode == oci.IPModeDual {
		d.grown = d.plan.add(Step{Action: UpdateIPMode, Want: -1, Detail: d.modeChange()})
	}
}

// afterGrowth are the steps that a listener or backend set of an address family waits for.
func (d *differ) afterGrowth(ipVersion string) []int {
	if d.grown < 0 || ipVersion != ipV6 {
		return nil
	}
	return []int{d.grown}
}

// shrink makes an NLB single stack, after all that needs both families is gone. It stays dual stack if others use that.
func (d *differ) shrink() Problems {
	if !d.changesMode() || d.want.IPMode != oci.IPModeV4 {
		return nil
	}
	var after []int
	going := map[string]bool{}
	for i, step := range d.plan {
		if step.Action == DeleteListener || step.Action == DeleteBackendSet {
			going[string(step.Action)+step.Name] = true
			after = append(after, i)
		}
	}
	var staying []string
	for _, name := range sortedKeys(d.have.Listeners) {
		if d.have.Listeners[name].IPVersion == ipV6 && !going[string(DeleteListener)+name] {
			staying = append(staying, "listener "+name)
		}
	}
	for _, name := range sortedKeys(d.have.BackendSets) {
		if d.have.BackendSets[name].IPVersion == ipV6 && !going[string(DeleteBackendSet)+name] {
			staying = append(staying, "backend set "+name)
		}
	}
	if len(staying) > 0 {
		return Problems{{Reason: ReasonKeptInUse, Message: "the Service does not need IPv6 any more, but the balancer keeps it for what is not ours: " + strings.Join(staying, ", ")}}
	}
	d.plan.add(Step{Action: UpdateIPMode, Want: -1, After: after, Detail: d.modeChange()})
	return nil
}

// changesMode says whether the address families of the balancer have to change. The field is optional in the API: where it is
// missing, nothing is changed.
func (d *differ) changesMode() bool {
	return d.have.Kind == oci.KindNLB && d.have.IPMode != "" && d.want.IPMode != "" && d.have.IPMode != d.want.IPMode
}

func (d *differ) modeChange() string { return fmt.Sprintf("%s, was %s", d.want.IPMode, d.have.IPMode) }

// modeRequest works out the change of the address families.
func (a *applier) modeRequest() (request, error) {
	updater, ok := a.cloud.(IPModeUpdater)
	if !ok || a.current.IPMode == a.want.IPMode {
		return nil, nil
	}
	id, etag, mode, address := a.current.ID, a.current.ETag, a.want.IPMode, ""
	if mode == oci.IPModeDual {
		address = a.want.AssignedIPv6
	}
	return func(ctx context.Context) (string, error) { return updater.UpdateIPMode(ctx, id, mode, address, etag) }, nil
}
