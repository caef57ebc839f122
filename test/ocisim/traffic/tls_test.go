// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/traffic"
)

// authority is a CA of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.pem, _ = a.issue("ca", true)
	return a
}

// issue makes a certificate for a host and its key, both PEM.
func (a *authority) issue(host string, isCA bool) (certificate, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: isCA, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if isCA {
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if isCA {
		a.key = private
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// put makes a bundle of a load balancer through the API, where private keys come from.
func (w *town) put(id, name, certificate, key, ca string) {
	w.Helper()
	body, err := json.Marshal(map[string]string{"certificateName": name, "publicCertificate": certificate, "privateKey": key, "caCertificate": ca})
	if err != nil {
		w.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, "https://iaas/20170115/loadBalancers/"+id+"/certificates", strings.NewReader(string(body)))
	if err != nil {
		w.Fatal(err)
	}
	res, err := w.region.Transport().RoundTrip(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		text, _ := io.ReadAll(res.Body)
		w.Fatalf("%d %s", res.StatusCode, text)
	}
	w.eventually("the bundle is there", func() bool {
		v, _ := w.region.LoadBalancer(id)
		return v.Certificates[name].CertificateName != nil
	})
}

func settings(bundle string, change func(*loadbalancer.SslConfiguration)) *loadbalancer.SslConfiguration {
	s := &loadbalancer.SslConfiguration{
		CertificateName: &bundle, Protocols: []string{"TLSv1.2", "TLSv1.3"}, CipherSuiteName: ptr("oci-tls-12-13-wider-ssl-cipher-suite-v1"),
		VerifyDepth: ptr(1), VerifyPeerCertificate: ptr(false),
	}
	if change != nil {
		change(s)
	}
	return s
}

// secure connects by TLS and returns the backend's greeting.
func (w *town) secure(address string, config *tls.Config) (string, error) {
	conn, err := w.body.DialContext(w.Context(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(w.Context()); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(client).ReadString('\n')
	return strings.TrimSpace(line), err
}

func TestListenersTerminateTLS(t *testing.T) {
	w := newTown(t, traffic.Options{})
	w.house("a", first)
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	w.healthy(id, first+":1", ocisim.HealthOK)
	ca := newAuthority(t)
	certificate, key := ca.issue("web.example.com", false)
	w.put(id, "web", certificate, key, ca.pem)
	w.changeListener(id, func(l *loadbalancer.Listener) { l.SslConfiguration = settings("web", nil) })
	config := &tls.Config{RootCAs: ca.pool(), ServerName: "web.example.com"}
	w.eventually("TLS", func() bool {
		got, err := w.secure(w.at(id), config)
		return err == nil && got == "a"
	})
	// Only its protocols.
	w.changeListener(id, func(l *loadbalancer.Listener) {
		l.SslConfiguration = settings("web", func(s *loadbalancer.SslConfiguration) { s.Protocols = []string{"TLSv1.3"} })
	})
	old := config.Clone()
	old.MaxVersion = tls.VersionTLS12
	w.eventually("TLS 1.2 is refused", func() bool { _, err := w.secure(w.at(id), old); return err != nil })
	// Only clients with a certificate of the bundle's CA.
	w.changeListener(id, func(l *loadbalancer.Listener) {
		l.SslConfiguration = settings("web", func(s *loadbalancer.SslConfiguration) { s.VerifyPeerCertificate = ptr(true) })
	})
	w.eventually("clients without a certificate are refused", func() bool { _, err := w.secure(w.at(id), config); return err != nil })
	known, stranger := config.Clone(), config.Clone()
	for c, signer := range map[*tls.Config]*authority{known: ca, stranger: newAuthority(t)} {
		clientCert, clientKey := signer.issue("client", false)
		pair, err := tls.X509KeyPair([]byte(clientCert), []byte(clientKey))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if got, err := w.secure(w.at(id), known); err != nil || got != "a" {
		t.Errorf("client of the CA: %q, %v", got, err)
	}
	if got, err := w.secure(w.at(id), stranger); err == nil {
		t.Errorf("client of another CA gets to %q", got)
	}
	// The certificates service has certificates and CAs too.
	other := newAuthority(t)
	served, servedKey := other.issue("web.example.com", false)
	byID := w.region.AddCertificate(ocisim.Certificate{Name: "served", PEM: served, PrivateKey: servedKey})
	trusted := w.region.AddCABundle(ocisim.CABundle{Name: "trusted", PEM: ca.pem})
	w.changeListener(id, func(l *loadbalancer.Listener) {
		l.SslConfiguration = settings("", func(s *loadbalancer.SslConfiguration) {
			s.CertificateIds, s.TrustedCertificateAuthorityIds, s.VerifyPeerCertificate = []string{byID}, []string{trusted}, ptr(true)
		})
	})
	known.RootCAs = other.pool()
	w.eventually("the certificate by its OCID", func() bool {
		got, err := w.secure(w.at(id), known)
		return err == nil && got == "a"
	})
	// Without a key there is no listener.
	w.changeListener(id, func(l *loadbalancer.Listener) { l.SslConfiguration = settings("none", nil) })
	w.eventually("a problem", func() bool { return strings.Contains(w.body.Listeners()[0].Problem, "no private key") })
}

func TestBackendSetsEncryptAnew(t *testing.T) {
	w := newTown(t, traffic.Options{})
	ca := newAuthority(t)
	certificate, key := ca.issue("node", false)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(res http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(res, who)
	}))
	backend.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of the test
	backend.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	backend.StartTLS()
	t.Cleanup(backend.Close)
	w.body.MapBackend(first, backend.Listener.Addr().String())
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	front, frontKey := ca.issue("balancer", false)
	w.put(id, "trusted", front, frontKey, ca.pem)
	w.put(id, "other", front, frontKey, newAuthority(t).pem)
	encrypt := func(bundle string) {
		w.changeSet(id, func(s *loadbalancer.BackendSet) {
			s.SslConfiguration = settings(bundle, func(s *loadbalancer.SslConfiguration) { s.VerifyPeerCertificate = ptr(true) })
		})
	}
	encrypt("trusted")
	w.healthy(id, first+":1", ocisim.HealthOK)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: w.body.DialContext}}
	w.eventually("an answer through TLS", func() bool {
		res, err := client.Get("http://" + w.at(id))
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text) == "balancer" // the backend sees the bundle's certificate
	})
	encrypt("other")
	w.healthy(id, first+":1", ocisim.HealthCritical) // signed by a CA that the bundle does not trust
}

// TestHTTPListenersOfOnePort are told apart by host name, with TLS and without, and say 502 without a backend.
func TestHTTPListenersOfOnePort(t *testing.T) {
	w := newTown(t, traffic.Options{})
	answer := func(name string) http.HandlerFunc {
		return func(res http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(res, name+" "+r.Host) }
	}
	w.webHouse(first, answer("a"))
	w.webHouse(second, answer("b"))
	id := w.lb("ROUND_ROBIN", ocisim.Backend{Address: first, Port: 1})
	ca := newAuthority(t)
	certificate, key := ca.issue("x.b.example.com", false)
	w.put(id, "bundle", certificate, key, ca.pem)
	w.changeLB(id, func(v *loadbalancer.LoadBalancer) {
		other := v.BackendSets["set"]
		other.Name = ptr("other")
		other.Backends = []loadbalancer.Backend{{Name: ptr(second + ":1"), IpAddress: ptr(second), Port: ptr(1), Weight: ptr(1)}}
		empty := other
		empty.Name, empty.Backends = ptr("empty"), nil
		v.BackendSets["other"], v.BackendSets["empty"] = other, empty
		v.Hostnames = map[string]loadbalancer.Hostname{
			"b": {Name: ptr("b"), Hostname: ptr("*.b.example.com")}, "c": {Name: ptr("c"), Hostname: ptr("c.example.com")},
		}
		l := v.Listeners["web"]
		l.Protocol = ptr("HTTP")
		v.Listeners["web"] = l
		for name, set := range map[string]string{"b": "other", "c": "empty"} {
			copied := l
			copied.Name, copied.DefaultBackendSetName, copied.HostnameNames = ptr(name), ptr(set), []string{name}
			v.Listeners[name] = copied
			copied.Name, copied.Port, copied.SslConfiguration = ptr(name+"-tls"), ptr(443), settings("bundle", nil)
			v.Listeners[name+"-tls"] = copied
		}
	})
	host := strings.TrimSuffix(w.at(id), ":80")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: ca.pool(), ServerName: "x.b.example.com"},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return w.body.DialContext(ctx, network, net.JoinHostPort(host, port))
		},
	}}
	for url, want := range map[string]string{
		"http://a.example.com/": "a a.example.com", "http://x.b.example.com/": "b x.b.example.com",
		"https://x.b.example.com/": "b x.b.example.com", "http://c.example.com/": "Bad Gateway\n",
	} {
		w.eventually(url+" answers "+want, func() bool {
			res, err := client.Get(url)
			if err != nil {
				return false
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			return string(text) == want && (res.StatusCode == http.StatusBadGateway) == strings.HasPrefix(want, "Bad")
		})
	}
}
