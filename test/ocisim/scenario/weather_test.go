// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// calm is when nothing goes wrong any more.
const calm = 53 * time.Minute

// ours says whether a call is one of the crews'.
func ours(c ocisim.Call) bool {
	return strings.Contains(c.Principal, "ccm-") || strings.Contains(c.Principal, "csi-")
}

// drizzle is what goes wrong all the time, for all calls of the crews.
func drizzle() []ocisim.Fault {
	return []ocisim.Fault{
		{Match: ours, Chance: 0.02, Status: http.StatusTooManyRequests, Note: "429"},
		{Match: ours, Chance: 0.01, Status: http.StatusInternalServerError, Note: "500"},
		{Match: ours, Chance: 0.005, Status: http.StatusServiceUnavailable, Applied: true, Note: "503 although applied"},
		{Match: ours, Chance: 0.01, Drop: ocisim.BeforeApply, Note: "dropped before"},
		{Match: ours, Chance: 0.01, Drop: ocisim.AfterApply, Note: "dropped after"},
		{Match: ours, Chance: 0.005, HalfBody: true, Note: "half of the body"},
		{Match: ours, Chance: 0.01, Delay: 5 * time.Second, Note: "slow"},
		{Operation: "CreateLoadBalancer", Match: ours, Nth: 5, Times: 6, FailWork: true, Note: "creation fails"},
		{Operation: "CreateNetworkLoadBalancer", Match: ours, Nth: 5, Times: 6, FailWork: true, Note: "creation fails"},
		{Operation: "UpdateBackendSet", Match: ours, Nth: 5, Times: 20, FailWork: true, Note: "update fails"},
		{Operation: "CreateVolume", Match: ours, Nth: 5, Times: 20, FailWork: true, Note: "volume is faulty"},
	}
}

// front is bad weather for some minutes.
type front struct {
	from, to int // minutes after the beginning
	fault    *ocisim.Fault
	denial   *ocisim.Policy
}

func (s *stage) fronts() []front {
	a, b := s.crews[0].balancers.principal, s.crews[1].balancers.principal
	volumesA, volumesB := s.crews[0].volumes.principal, s.crews[1].volumes.principal
	return []front{
		{from: 8, to: 9, fault: &ocisim.Fault{Principal: a, Status: http.StatusServiceUnavailable, Note: "outage"}},
		{from: 15, to: 17, denial: &ocisim.Policy{Principal: a, Verb: ocisim.Use, ResourceType: "load-balancers"}},
		{from: 24, to: 26, denial: &ocisim.Policy{Principal: b, Verb: ocisim.Inspect, ResourceType: "network-load-balancers"}},
		{from: 28, to: 30, denial: &ocisim.Policy{Principal: a, Operation: "GetLoadBalancer"}},
		{from: 33, to: 34, fault: &ocisim.Fault{Principal: b, Operation: "GetWorkRequest", Status: http.StatusTooManyRequests, Note: "429 for all"}},
		{from: 36, to: 38, fault: &ocisim.Fault{Match: ours, Delay: 15 * time.Second, Note: "slow region"}},
		{from: 10, to: 12, fault: &ocisim.Fault{Principal: volumesB, Operation: "AttachVolume", Drop: ocisim.AfterApply, Note: "attached, unanswered"}},
		{from: 18, to: 20, denial: &ocisim.Policy{Principal: volumesA, Verb: ocisim.Use, ResourceType: "volumes"}},
		{from: 21, to: 22, denial: &ocisim.Policy{Principal: volumesB, Verb: ocisim.Inspect, ResourceType: "volume-attachments"}},
		{from: 31, to: 33, denial: &ocisim.Policy{Principal: volumesA, Operation: "GetVolume"}},
		{from: 41, to: 42, fault: &ocisim.Fault{Principal: volumesA, Status: http.StatusServiceUnavailable, Note: "volume outage"}},
		{from: 44, to: 45, fault: &ocisim.Fault{Principal: a, Drop: ocisim.AfterApply, Note: "no answer at all"}},
	}
}

// weather lets things go wrong until the calm.
func (s *stage) weather(ctx context.Context) error {
	for _, fault := range drizzle() {
		defer s.region.Fault(fault)()
	}
	type turn struct {
		at  time.Duration
		run func()
	}
	var turns []turn
	for _, f := range s.fronts() {
		var end func()
		turns = append(turns,
			turn{time.Duration(f.from) * time.Minute, func() {
				if f.fault != nil {
					end = s.region.Fault(*f.fault)
				} else {
					end = s.region.Deny(*f.denial)
				}
			}},
			turn{time.Duration(f.to) * time.Minute, func() { end() }})
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return int(a.at - b.at) })
	for _, t := range turns {
		if err := s.at(ctx, t.at); err != nil {
			return err
		}
		t.run()
	}
	return s.at(ctx, calm)
}

// nodeLosses are the nodes that are terminated, by their index: one through the API, one past it.
var nodeLosses = []struct {
	at      time.Duration
	node    int
	pastAPI bool
}{
	{at: 20 * time.Minute, node: 2},
	{at: 40 * time.Minute, node: 5, pastAPI: true},
}

// loseNodes terminates nodes.
func (s *stage) loseNodes(ctx context.Context) error {
	instances := s.region.Instances()
	for _, lost := range nodeLosses {
		if err := s.at(ctx, lost.at-10*time.Second); err != nil {
			return err
		}
		id := *instances[lost.node].Id
		var err error
		if lost.pastAPI {
			err = s.region.Foreign().TerminateInstance(id)
		} else {
			_, err = s.foreign.compute.TerminateInstance(ctx, core.TerminateInstanceRequest{InstanceId: &id})
		}
		if err != nil {
			return fmt.Errorf("terminate a node: %w", err)
		}
		s.nodes.lost(id)
	}
	return nil
}

// interfere is somebody else at work: on what is theirs and on balancers of the crews, through the API and past it.
func (s *stage) interfere(ctx context.Context, random *rand.Rand) error {
	for n := 0; ; n++ {
		if err := sleep(ctx, 15*time.Second); err != nil {
			return err
		}
		if time.Since(s.began) > 50*time.Minute {
			return nil
		}
		_, err := s.foreign.network.UpdateNetworkSecurityGroup(ctx, core.UpdateNetworkSecurityGroupRequest{
			NetworkSecurityGroupId: &s.group,
			UpdateNetworkSecurityGroupDetails: core.UpdateNetworkSecurityGroupDetails{
				DisplayName: common.String(fmt.Sprintf("of somebody else, version %d", n)),
			},
		})
		if err != nil {
			return fmt.Errorf("change a group: %w", err)
		}
		if err := s.unplug(ctx, random); err != nil {
			return err
		}
		lbs := s.region.LoadBalancers()
		if len(lbs) == 0 {
			continue
		}
		victim := lbs[random.IntN(len(lbs))]
		if random.IntN(2) == 0 {
			err = s.label(ctx, &victim)
		} else {
			err = s.breakSet(&victim)
		}
		if err != nil {
			return err
		}
	}
}

// interrupt steps in between two calls: after every tenth read of a load balancer somebody else changes it before the reader can act on what
// it read.
func (s *stage) interrupt() {
	var reads atomic.Int64
	s.region.OnCall(func(c ocisim.Call) {
		if c.Operation != "GetLoadBalancer" || c.Status != http.StatusOK || !ours(c) || time.Since(s.began) > calm {
			return
		}
		if n := reads.Add(1); n%10 == 0 {
			s.fail(s.region.Foreign().LoadBalancer(c.Resource, func(v *loadbalancer.LoadBalancer) {
				v.FreeformTags = maps.Clone(v.FreeformTags)
				v.FreeformTags["seen"] = strconv.FormatInt(n, 10)
			}))
		}
	})
}

// label adds a tag of its own to a balancer, where that is possible just now.
func (s *stage) label(ctx context.Context, v *loadbalancer.LoadBalancer) error {
	tags := map[string]string{"team": "red"}
	for key, tag := range v.FreeformTags {
		tags[key] = tag
	}
	etag := s.region.ETag(*v.Id)
	_, err := s.foreign.lb.UpdateLoadBalancer(ctx, loadbalancer.UpdateLoadBalancerRequest{
		LoadBalancerId: v.Id, IfMatch: &etag, UpdateLoadBalancerDetails: loadbalancer.UpdateLoadBalancerDetails{FreeformTags: tags},
	})
	if failure, refused := common.IsServiceError(err); refused && failure.GetHTTPStatusCode() < http.StatusInternalServerError {
		return nil // it is being created, deleted, or was changed just now
	}
	return err
}

// unplug detaches some volume of the crews, as a person in the console does.
func (s *stage) unplug(ctx context.Context, random *rand.Rand) error {
	list := s.region.VolumeAttachments()
	if len(list) == 0 {
		return nil
	}
	_, err := s.foreign.compute.DetachVolume(ctx, core.DetachVolumeRequest{VolumeAttachmentId: list[random.IntN(len(list))].GetId()})
	if failure, refused := common.IsServiceError(err); refused && failure.GetHTTPStatusCode() < http.StatusInternalServerError {
		return nil // it is detached already, or on its way
	}
	return err
}

// breakSet takes all backends out of a set of a balancer, past the API.
func (s *stage) breakSet(v *loadbalancer.LoadBalancer) error {
	return s.region.Foreign().LoadBalancer(*v.Id, func(v *loadbalancer.LoadBalancer) {
		for name, set := range v.BackendSets {
			set.Backends = []loadbalancer.Backend{}
			v.BackendSets[name] = set
			return
		}
	})
}
