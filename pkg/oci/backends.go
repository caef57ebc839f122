// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import "net/netip"

// WithBackends returns a copy of the backend set that has exactly the given backends. One that the set has already (see
// Backend.Same) is taken as the cloud has it, with its weight, its backup, drain and offline flags and every field that
// Backend does not model: somebody may have drained it by hand. A caller that controls one of these fields sets it in
// the result.
func (bs BackendSet) WithBackends(backends []Backend) BackendSet {
	out := make([]Backend, len(backends))
	for i, b := range backends {
		out[i] = b
		if have := findBackend(bs.Backends, b); have != nil {
			out[i] = *have
		}
	}
	bs.Backends = out
	return bs
}

// Same says whether both are the same target for the cloud: the same port and the same address, or, where one of them
// has no address, the same target OCID.
func (b Backend) Same(other Backend) bool {
	if b.Port != other.Port {
		return false
	}
	if b.IP != "" && other.IP != "" {
		return sameAddress(b.IP, other.IP)
	}
	return b.TargetID != "" && b.TargetID == other.TargetID
}

func findBackend(in []Backend, b Backend) *Backend {
	for i := range in {
		if in[i].Same(b) {
			return &in[i]
		}
	}
	return nil
}

// sameAddress compares addresses, not their text: an IPv6 address has many spellings.
func sameAddress(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x == y
}

// resolve returns the backend to send and the one to start from. A backend that comes from a read carries its origin,
// and what it says holds. One that the caller made, for a target that the set has, only adds to what is there: its zero
// fields mean that the caller does not care.
func resolveBackend(b Backend, existing []Backend) (Backend, any) {
	if b.origin != nil {
		return b, b.origin
	}
	have := findBackend(existing, b)
	if have == nil {
		return b, nil
	}
	if b.IP == "" {
		b.IP = have.IP
	}
	if b.TargetID == "" {
		b.TargetID = have.TargetID
	}
	if b.Weight == 0 {
		b.Weight = have.Weight
	}
	b.Backup = b.Backup || have.Backup
	b.Drain = b.Drain || have.Drain
	b.Offline = b.Offline || have.Offline
	return b, have.origin
}
