// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"errors"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
)

// BalancerBody makes balancers more than records: it listens where they listen, and checks their backends.
type BalancerBody interface {
	// Attach gives the body its region, once, before the region is used. From then on the body reads BalancerChanges
	// whenever it wants; calls of the API, and the end of BalancerChanges.Next, are good moments.
	Attach(*Region)
	// BackendHealth is what the checks of a backend found, HealthUnknown before they found anything. It is called with the
	// region's lock held: it must return at once, and not call the region.
	BackendHealth(balancerID, backendSet, backend string) HealthStatus
	// Close ends it.
	Close() error
}

var errUnknownHealth = errors.New("want OK, WARNING, CRITICAL or UNKNOWN")

// BackendName names a backend of a balancer as the API does.
type BackendName struct {
	Balancer, BackendSet, Backend string
}

// BalancerChanges is the state of all balancers that take traffic, for one who knows part of it.
type BalancerChanges struct {
	// ETags are those of all balancers that take traffic: load balancers that are ACTIVE or DELETING, and network load
	// balancers that are that or UPDATING.
	ETags map[string]string
	// LoadBalancers and NetworkLoadBalancers are those whose etag is not the known one.
	LoadBalancers        []loadbalancer.LoadBalancer
	NetworkLoadBalancers []networkloadbalancer.NetworkLoadBalancer
	// Forced is what SetBackendHealth says.
	Forced map[BackendName]HealthStatus
	// Next is the time until the region changes by itself; negative if nothing is to come.
	Next time.Duration
}

// BalancerChanges reads what is new to one who knows balancers with these etags.
func (r *Region) BalancerChanges(known map[string]string) BalancerChanges {
	cl := r.lock()
	defer r.mu.Unlock()
	changes := BalancerChanges{ETags: map[string]string{}, Forced: map[BackendName]HealthStatus{}, Next: -1}
	for _, res := range cl.store.under(loadBalancers.kindInfo, "") {
		if !takesTraffic(res.state) {
			continue
		}
		if changes.ETags[res.id] = res.etag; known[res.id] != res.etag {
			changes.LoadBalancers = append(changes.LoadBalancers, *cloneOf(loadBalancers.of(res)))
		}
	}
	for _, res := range cl.store.under(networkLoadBalancers.kindInfo, "") {
		if !takesTraffic(res.state) {
			continue
		}
		if changes.ETags[res.id] = res.etag; known[res.id] != res.etag {
			changes.NetworkLoadBalancers = append(changes.NetworkLoadBalancers, *cloneOf(networkLoadBalancers.of(res)))
		}
	}
	for _, notes := range cl.balancers {
		for key, status := range notes.forced {
			changes.Forced[BackendName{key.balancer, key.set, key.backend}] = status
		}
	}
	if len(cl.schedule.events) > 0 {
		changes.Next = max(0, cl.schedule.events[0].at.Sub(cl.now))
	}
	return changes
}

func takesTraffic(state string) bool {
	return state == "ACTIVE" || state == "UPDATING" || state == "DELETING"
}

// BalancerCertificate is a certificate with its private key and the CA certificates that go with it, all PEM. One that no call
// of the API made has no key here.
type BalancerCertificate struct {
	Public, Key, CA string
}

// BalancerCertificates returns what the TLS settings of a load balancer refer to, for bodies that do TLS: its own bundles by
// name; certificates and CA bundles of the certificates service by OCID.
func (r *Region) BalancerCertificates(id string) map[string]BalancerCertificate {
	cl := r.lock()
	defer r.mu.Unlock()
	v := loadBalancers.find(cl, id)
	if v == nil {
		return nil
	}
	bundles := map[string]BalancerCertificate{}
	for name, c := range v.Certificates {
		bundle := BalancerCertificate{Public: value(c.PublicCertificate), CA: value(c.CaCertificate)}
		if d, ok := cl.balancers.read(id).keys[name]; ok && value(d.Passphrase) == "" {
			bundle.Key = value(d.PrivateKey)
		}
		bundles[name] = bundle
	}
	_ = tlsUsers(v, func(ssl *loadbalancer.SslConfiguration) error { // refuses nothing
		for _, id := range ssl.CertificateIds {
			if c := leafCertificates.find(cl, id); c != nil {
				bundles[id] = BalancerCertificate{Public: c.pem + "\n" + c.chain, Key: c.key}
			}
		}
		for _, id := range ssl.TrustedCertificateAuthorityIds {
			if b := caBundles.find(cl, id); b != nil {
				bundles[id] = BalancerCertificate{CA: b.pem}
			}
		}
		return nil
	})
	return bundles
}

// BackendAddress is the address behind a backend of a network load balancer that names a target: that of the private IP, or
// the primary one of the instance; "" if there is none.
func (r *Region) BackendAddress(target string) string {
	cl := r.lock()
	defer r.mu.Unlock()
	if ip := privateIPs.find(cl, target); ip != nil {
		return value(ip.IpAddress)
	}
	if ip := ipv6s.find(cl, target); ip != nil {
		return value(ip.IpAddress)
	}
	for a := range vnicAttachments.under(cl, target) {
		if v := vnics.find(cl, value(a.VnicId)); v != nil && value(v.IsPrimary) {
			return value(v.PrivateIp)
		}
	}
	return ""
}

// BackendUp says whether somebody could answer at an address: false for the address of an instance that does not run.
func (r *Region) BackendUp(address string) bool {
	cl := r.lock()
	defer r.mu.Unlock()
	return !cl.instanceDown("", address)
}
