// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"reflect"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
)

// performance is the performance setting of a volume or boot volume.
type performance struct {
	vpus     int64
	autoTune bool // go down to the lower cost level when detached
	policies []core.AutotunePolicy
}

// newPerformance reads the settings of a create, or of an update of old ones.
func newPerformance(vpus *int64, autoTune *bool, policies []core.AutotunePolicy, old *performance) (performance, error) {
	p := performance{vpus: defaultVPUs}
	if old != nil {
		p = *old
	}
	if vpus != nil {
		p.vpus = *vpus
	}
	if p.vpus < 0 || p.vpus > maxVPUs || p.vpus%10 != 0 {
		return p, errInvalid("vpusPerGB must be a multiple of 10 between 0 and %d, not %d.", maxVPUs, p.vpus)
	}
	if autoTune != nil {
		p.autoTune = *autoTune
	}
	if policies != nil {
		p.policies, p.autoTune = policies, value(autoTune)
	}
	if len(p.policies) == 0 {
		p.policies = nil
	}
	for _, policy := range p.policies {
		switch q := policy.(type) {
		case core.DetachedVolumeAutotunePolicy:
			p.autoTune = true
		case core.PerformanceBasedAutotunePolicy:
			if most := value(q.MaxVpusPerGB); most < p.vpus || most > maxVPUs || most%10 != 0 {
				return p, errInvalid("maxVpusPerGB must be a multiple of 10 between vpusPerGB and %d, not %d.", maxVPUs, most)
			}
		default:
			return p, errInvalid("The autotuneType of an autotune policy is not supported.")
		}
	}
	return p, nil
}

// policiesOf returns the autotune policies of a request, nil where it says nothing about them. The SDK's models make
// an empty list of an absent one.
func (c *call) policiesOf(list []core.AutotunePolicy) []core.AutotunePolicy {
	var given struct {
		AutotunePolicies *json.RawMessage `json:"autotunePolicies"`
	}
	if json.Unmarshal(c.body, &given) != nil || given.AutotunePolicies == nil {
		return nil
	}
	return list
}

func performanceOf(v *core.Volume) performance {
	return performance{vpus: value(v.VpusPerGB), autoTune: value(v.IsAutoTuneEnabled), policies: v.AutotunePolicies}
}

func (p performance) equal(other performance) bool { return reflect.DeepEqual(p, other) }

func (p performance) applyTo(v *core.Volume) {
	v.VpusPerGB, v.IsAutoTuneEnabled, v.AutotunePolicies = common.Int64(p.vpus), common.Bool(p.autoTune), p.policies
	v.AutoTunedVpusPerGB = nil
	if p.tuned() {
		v.AutoTunedVpusPerGB = common.Int64(p.vpus)
	}
}

// tuned says whether the service has a say in the performance.
func (p performance) tuned() bool { return p.autoTune || len(p.policies) > 0 }

// tuneLater takes a volume with auto-tuning to the lower cost level once it has been detached for long enough.
func (cl *cloud) tuneLater(id string) {
	if waiting := cl.block.tuning[id]; waiting != nil {
		waiting.cancel = true
		delete(cl.block.tuning, id)
	}
	v := volumes.find(cl, id)
	if v == nil || !value(v.IsAutoTuneEnabled) || cl.attachedTo(id) != nil {
		return
	}
	cl.block.tuning[id] = cl.after(cl.behaviour.DetachedAutoTune, func() {
		delete(cl.block.tuning, id)
		volumes.update(cl, id, func(v *core.Volume) { v.AutoTunedVpusPerGB = common.Int64(0) })
	})
}

// tuneUp gives an attached volume its performance back.
func (cl *cloud) tuneUp(id string) {
	cl.tuneLater(id) // attached: ends the wait
	volumes.update(cl, id, func(v *core.Volume) {
		if p := performanceOf(v); p.tuned() {
			v.AutoTunedVpusPerGB = common.Int64(p.vpus)
		}
	})
}
