// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

func itoa(n int) string { return strconv.Itoa(n) }

// selfSigned makes a certificate for a host and its key, both PEM.
func selfSigned(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(24 * 365 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &pki.SigningKey().PublicKey, pki.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(pki.SigningKey())}))
}

func TestTLSSettings(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 50}, func(t *testing.T, p *pier) {
		certificate, key := selfSigned(t, "web.example.com")
		lb := lbPath + "/" + p.newLB(object{"certificates": object{
			"plain": object{"certificateName": "plain", "publicCertificate": certificate, "privateKey": key},
			"ca":    object{"certificateName": "ca", "publicCertificate": certificate, "privateKey": key, "caCertificate": certificate},
		}})
		id := p.region.AddCertificate(ocisim.Certificate{Name: "web", Compartment: p.compartment})
		bundle := p.region.AddCABundle(ocisim.CABundle{Name: "ca", Compartment: p.compartment})
		for name, c := range map[string]struct {
			ssl     object
			refused bool
		}{
			"certificate":                   {object{"certificateName": "plain"}, false},
			"certificate by id":             {object{"certificateIds": []string{id}}, false},
			"neither":                       {object{}, true},
			"both":                          {object{"certificateName": "plain", "certificateIds": []string{id}}, true},
			"two ids":                       {object{"certificateIds": []string{id, id + "b"}}, true},
			"id of something else":          {object{"certificateIds": []string{"ocid1.vcn.oc1.iad.a"}}, true},
			"unknown certificate":           {object{"certificateName": "none"}, true},
			"verify without a CA":           {object{"certificateName": "plain", "verifyPeerCertificate": true}, true},
			"verify with the bundle's CA":   {object{"certificateName": "ca", "verifyPeerCertificate": true, "verifyDepth": 1}, false},
			"verify with a CA by id":        {object{"certificateName": "plain", "verifyPeerCertificate": true, "trustedCertificateAuthorityIds": []string{bundle}}, false},
			"CA by an id of something else": {object{"certificateName": "plain", "trustedCertificateAuthorityIds": []string{id}}, true},
			"negative depth":                {object{"certificateName": "plain", "verifyDepth": -1}, true},
			"unknown suite":                 {object{"certificateName": "plain", "cipherSuiteName": "none"}, true},
			"reserved suite":                {object{"certificateName": "plain", "cipherSuiteName": "oci-customized-ssl-cipher-suite"}, true},
			"TLS 1.3 with the default":      {object{"certificateName": "plain", "protocols": []string{"TLSv1.3"}}, true},
			"TLS 1.3 with its suite":        {object{"certificateName": "plain", "protocols": []string{"TLSv1.3"}, "cipherSuiteName": "oci-tls-13-recommended-ssl-cipher-suite-v1"}, false},
			"SSL 3":                         {object{"certificateName": "plain", "protocols": []string{"SSLv3"}}, true},
			"protocol twice":                {object{"certificateName": "plain", "protocols": []string{"TLSv1.2", "TLSv1.2"}}, true},
			"unknown preference":            {object{"certificateName": "plain", "serverOrderPreference": "MAYBE"}, true},
		} {
			r := p.post(lb+"/listeners", httpListener(object{"sslConfiguration": c.ssl}))
			if c.refused {
				if r.status != http.StatusBadRequest || str(r.object(), "code") != "InvalidParameter" {
					t.Errorf("%s: %d %s", name, r.status, r.body)
				}
				continue
			}
			if r.status != http.StatusNoContent {
				t.Errorf("%s: %d %s", name, r.status, r.body)
				continue
			}
			settle()
			p.want204(p.delete(lb + "/listeners/web"))
		}
		for _, ssl := range []object{
			{"certificateIds": []string{"ocid1.certificate.oc1.iad.none"}},
			{"certificateName": "plain", "trustedCertificateAuthorityIds": []string{"ocid1.cabundle.oc1.iad.none"}},
		} {
			p.post(lb+"/listeners", httpListener(object{"sslConfiguration": ssl})).wantError(http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound")
		}
		p.want204(p.post(lb+"/listeners", httpListener(object{"protocol": "HTTP2", "sslConfiguration": object{"certificateName": "plain"}})))
		v := p.region.LoadBalancers()[0].Listeners["web"].SslConfiguration
		if *v.CipherSuiteName != "oci-default-http2-ssl-cipher-suite-v1" || v.Protocols[0] != "TLSv1.2" || *v.VerifyDepth != 5 || *v.VerifyPeerCertificate {
			t.Errorf("defaults %v", v)
		}
		p.delete(lb+"/certificates/plain").wantError(http.StatusConflict, "Conflict")
	})
}

func TestCipherSuites(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 51}, func(t *testing.T, p *pier) {
		certificate, key := selfSigned(t, "web.example.com")
		id := p.newLB(object{"certificates": object{"c": object{"certificateName": "c", "publicCertificate": certificate, "privateKey": key}}})
		ctx, own := t.Context(), "own"
		create := func(name string, ciphers ...string) error {
			_, err := p.lb.CreateSSLCipherSuite(ctx, loadbalancer.CreateSSLCipherSuiteRequest{
				LoadBalancerId: &id, CreateSslCipherSuiteDetails: loadbalancer.CreateSslCipherSuiteDetails{Name: &name, Ciphers: ciphers},
			})
			return err
		}
		refusedAs(t, create("oci-default-ssl-cipher-suite-v1", "AES128-SHA"), 400, "InvalidParameter")
		refusedAs(t, create("none", "ROT13"), 400, "InvalidParameter")
		refusedAs(t, create("none", "AES128-SHA", "AES128-SHA"), 400, "InvalidParameter")
		if err := create(own, "AES128-SHA"); err != nil {
			t.Fatal(err)
		}
		settle()
		refusedAs(t, create(own, "AES128-SHA"), 409, "NotAuthorizedOrResourceAlreadyExists")
		ssl := object{"certificateName": "c", "cipherSuiteName": own, "protocols": []string{"TLSv1.1"}}
		p.want204(p.post(lbPath+"/"+id+"/listeners", httpListener(object{"sslConfiguration": ssl})))
		update := func(ciphers ...string) error {
			_, err := p.lb.UpdateSSLCipherSuite(ctx, loadbalancer.UpdateSSLCipherSuiteRequest{
				LoadBalancerId: &id, Name: &own, UpdateSslCipherSuiteDetails: loadbalancer.UpdateSslCipherSuiteDetails{Ciphers: ciphers},
			})
			return err
		}
		refusedAs(t, update("AES128-GCM-SHA256"), 400, "InvalidParameter") // the listener speaks TLS 1.1 only
		if err := update("AES256-SHA"); err != nil {
			t.Fatal(err)
		}
		settle()
		got := granted[loadbalancer.GetSSLCipherSuiteResponse](t)(p.lb.GetSSLCipherSuite(ctx, loadbalancer.GetSSLCipherSuiteRequest{LoadBalancerId: &id, Name: &own}))
		list := granted[loadbalancer.ListSSLCipherSuitesResponse](t)(p.lb.ListSSLCipherSuites(ctx, loadbalancer.ListSSLCipherSuitesRequest{LoadBalancerId: &id}))
		if got.Ciphers[0] != "AES256-SHA" || len(list.Items) != 1 {
			t.Errorf("suite %v, list %v", got.SslCipherSuite, list.Items)
		}
		_, err := p.lb.DeleteSSLCipherSuite(ctx, loadbalancer.DeleteSSLCipherSuiteRequest{LoadBalancerId: &id, Name: &own})
		refusedAs(t, err, 409, "Conflict")
		p.want204(p.delete(lbPath + "/" + id + "/listeners/web"))
		granted[loadbalancer.DeleteSSLCipherSuiteResponse](t)(p.lb.DeleteSSLCipherSuite(ctx, loadbalancer.DeleteSSLCipherSuiteRequest{LoadBalancerId: &id, Name: &own}))
	})
}

// TestAddressesOfALoadBalancer changes them where a test allows it.
func TestAddressesOfALoadBalancer(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 52}, func(t *testing.T, p *pier) {
		id := p.newLB(nil)
		lb := lbPath + "/" + id
		one := p.region.AddPublicIP(ocisim.PublicIP{Name: "one", Compartment: p.compartment})
		two := p.region.AddPublicIP(ocisim.PublicIP{Name: "two", Compartment: p.compartment})
		reserved := func(ids ...string) object {
			list := []object{}
			for _, id := range ids {
				list = append(list, object{"id": id})
			}
			return object{"reservedIps": list}
		}
		p.put(lb, reserved(one)).wantError(http.StatusBadRequest, "InvalidParameter")
		p.put(lb, object{"ipMode": "IPV6"}).wantError(http.StatusBadRequest, "InvalidParameter")
		p.want204(p.put(lb, object{"ipMode": "IPV4"})) // which it has
		p.region.SetBehaviour(func(b *ocisim.Behaviour) {
			b.Rulings[ocisim.LoadBalancerAddressChange] = ocisim.Ruling{Allow: true}
		})
		p.put(lb, object{"ipMode": "IPV6"}).wantError(http.StatusBadRequest, "InvalidParameter") // no IPv6 in the subnet
		p.put(lb, reserved(one, two)).wantError(http.StatusBadRequest, "InvalidParameter")
		states := func() string {
			settle()
			text := ""
			for _, ip := range p.region.PublicIPs() {
				text += string(ip.LifecycleState) + " "
			}
			for _, a := range p.region.LoadBalancers()[0].IpAddresses {
				if a.ReservedIp != nil {
					text += *a.ReservedIp.Id
				}
			}
			return text
		}
		for _, step := range []struct {
			change object
			want   string
		}{
			{reserved(one), "ASSIGNED AVAILABLE " + one},
			{reserved(two), "AVAILABLE ASSIGNED " + two},
			{object{"displayName": "x"}, "AVAILABLE ASSIGNED " + two},
			{reserved(), "AVAILABLE AVAILABLE "},
		} {
			p.want204(p.put(lb, step.change))
			if got := states(); got != step.want {
				t.Errorf("after %v: %q, want %q", step.change, got, step.want)
			}
		}
	})
}

func TestIPv6LoadBalancer(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 53}, func(t *testing.T, p *pier) {
		vcn := p.region.AddVCN(ocisim.VCN{Name: "six", Compartment: p.compartment, CIDRs: []string{"10.9.0.0/16"}, IPv6CIDRs: []string{"2001:db8::/56"}})
		subnet := p.region.AddSubnet(ocisim.Subnet{Name: "six", VCN: vcn, CIDR: "10.9.0.0/24", IPv6CIDR: "2001:db8:0:1::/64"})
		body := object{"subnetIds": []string{subnet}, "ipMode": "IPV6"}
		p.post(lbPath, p.lbBody(object{"ipMode": "IPV6"})).wantError(http.StatusBadRequest, "InvalidParameter")
		body["ipv6SubnetCidr"] = "2001:db8:0:2::/64"
		p.post(lbPath, p.lbBody(body)).wantError(http.StatusBadRequest, "InvalidParameter")
		body["ipv6SubnetCidr"] = "2001:db8:0:1::/64"
		id := p.newLB(body)
		v, _ := p.region.LoadBalancer(id)
		if len(v.IpAddresses) != 1 || *v.IpAddresses[0].IpAddress != "2001:db8:0:1::2" || !*v.IpAddresses[0].IsPublic {
			t.Errorf("addresses %v", v.IpAddresses)
		}
	})
}
