// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// tlsUsers visits the TLS settings of all listeners and backend sets until one is refused.
func tlsUsers(v *loadbalancer.LoadBalancer, visit func(*loadbalancer.SslConfiguration) error) error {
	for _, name := range sortedKeys(v.Listeners) {
		if ssl := v.Listeners[name].SslConfiguration; ssl != nil {
			if err := visit(ssl); err != nil {
				return err
			}
		}
	}
	for _, name := range sortedKeys(v.BackendSets) {
		if ssl := v.BackendSets[name].SslConfiguration; ssl != nil {
			if err := visit(ssl); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkListenerTLS checks what a listener says about TLS.
func (cl *cloud) checkListenerTLS(v *loadbalancer.LoadBalancer, name string, l *loadbalancer.Listener) error {
	protocol, suite := value(l.Protocol), defaultSuite
	if protocol == "HTTP2" || protocol == "GRPC" {
		suite = defaultHTTPSuite
		if l.SslConfiguration == nil {
			return cl.rule(ListenerNeedsTLS, name, protocol)
		}
	}
	if l.SslConfiguration == nil {
		return nil
	}
	if value(l.SslConfiguration.CertificateName) == "" && len(l.SslConfiguration.CertificateIds) == 0 {
		if err := cl.rule(CertificateMissing, name); err != nil {
			return err
		}
	}
	return cl.completeSSL(v, l.SslConfiguration, suite)
}

// completeSSL checks TLS settings against what the load balancer has, and fills the documented defaults in.
func (cl *cloud) completeSSL(v *loadbalancer.LoadBalancer, ssl *loadbalancer.SslConfiguration, suite string) error {
	if ssl == nil {
		return nil
	}
	name := value(ssl.CertificateName)
	if name != "" {
		if _, ok := v.Certificates[name]; !ok {
			return errInvalid("Certificate '%s' does not exist on the load balancer.", name)
		}
		if len(ssl.CertificateIds) > 0 {
			if err := cl.rule(CertificateTwice); err != nil {
				return err
			}
		}
	}
	if err := cl.checkCertificateIDs(ssl); err != nil {
		return err
	}
	if ssl.VerifyDepth = orDefault(ssl.VerifyDepth, 5); *ssl.VerifyDepth < 0 {
		return errInvalid("verifyDepth must not be negative")
	}
	if ssl.VerifyPeerCertificate = orDefault(ssl.VerifyPeerCertificate, false); *ssl.VerifyPeerCertificate {
		if value(v.Certificates[name].CaCertificate) == "" && len(ssl.TrustedCertificateAuthorityIds) == 0 {
			if err := cl.rule(VerifyNeedsAuthority); err != nil {
				return err
			}
		}
	}
	if value(ssl.CipherSuiteName) == "" {
		ssl.CipherSuiteName = common.String(suite)
	}
	if len(ssl.Protocols) == 0 {
		ssl.Protocols = []string{"TLSv1.2"}
	}
	for i, protocol := range ssl.Protocols {
		if !slices.Contains(tlsProtocols, protocol) || slices.Contains(ssl.Protocols[:i], protocol) {
			return errInvalid("SSL protocols must be different ones of %s, not %s", strings.Join(tlsProtocols, ", "), strings.Join(ssl.Protocols, ", "))
		}
	}
	return cl.checkCiphers(v, ssl)
}

// checkCertificateIDs checks what names objects of the certificates service. CAs that are no bundles are known by their form
// only.
func (cl *cloud) checkCertificateIDs(ssl *loadbalancer.SslConfiguration) error {
	if len(ssl.CertificateIds) > 1 {
		return errInvalid("At most one certificate id is allowed.")
	}
	for _, id := range ssl.CertificateIds {
		if !strings.HasPrefix(id, "ocid1.certificate.") {
			return errInvalid("'%s' is not the OCID of a certificate.", id)
		}
		if leafCertificates.find(cl, id) == nil {
			return errRelated(id)
		}
	}
	for i, id := range ssl.TrustedCertificateAuthorityIds {
		if !strings.HasPrefix(id, "ocid1.cabundle.") && !strings.HasPrefix(id, "ocid1.certificateauthority.") {
			return errInvalid("'%s' is not the OCID of a CA or of a CA bundle.", id)
		}
		if slices.Contains(ssl.TrustedCertificateAuthorityIds[:i], id) {
			return errInvalid("The trusted CA %s is there twice.", id)
		}
		if strings.HasPrefix(id, "ocid1.cabundle.") && caBundles.find(cl, id) == nil {
			return errRelated(id)
		}
	}
	return nil
}

// putCertificate checks a certificate bundle and stores its public part.
func (cl *cloud) putCertificate(v *loadbalancer.LoadBalancer, d loadbalancer.CertificateDetails) error {
	name := value(d.CertificateName)
	if err := checkPattern("certificateName", name, partName); err != nil {
		return err
	}
	if problem := certificateProblem(d); problem != "" {
		if err := cl.rule(BadCertificate, name, problem); err != nil {
			return err
		}
	}
	if v.Certificates == nil {
		v.Certificates = map[string]loadbalancer.Certificate{}
	}
	v.Certificates[name] = loadbalancer.Certificate{
		CertificateName:   common.String(name),
		PublicCertificate: orDefault(d.PublicCertificate, ""),
		CaCertificate:     orDefault(d.CaCertificate, ""),
	}
	return cl.balancerLimit("certificates", len(v.Certificates))
}

func certificateProblem(d loadbalancer.CertificateDetails) string {
	if ca := value(d.CaCertificate); ca != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(ca)) {
		return "the CA certificate does not parse"
	}
	public, key := value(d.PublicCertificate), value(d.PrivateKey)
	switch {
	case public == "" && key == "":
		return ""
	case public == "" || key == "":
		return "certificate and private key belong together"
	case value(d.Passphrase) != "":
		if block, _ := pem.Decode([]byte(public)); block == nil {
			return "the certificate does not parse"
		}
		return ""
	}
	if _, err := tls.X509KeyPair([]byte(public), []byte(key)); err != nil {
		return err.Error()
	}
	return ""
}

func createCertificate(c *call) (*answer, error) {
	d, err := decode[loadbalancer.CreateCertificateDetails](c)
	if err != nil {
		return nil, err
	}
	details, id := recast[loadbalancer.CertificateDetails](d), c.target.id
	return c.changeLoadBalancerThen("CreateCertificate", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Certificates[value(d.CertificateName)]; exists {
			return cl.rule(PartExists, "Certificate", value(d.CertificateName))
		}
		return cl.putCertificate(v, details)
	}, func(cl *cloud, _ *loadbalancer.LoadBalancer) error {
		cl.balancers.keepKey(id, details)
		return nil
	})
}

func deleteCertificate(c *call) (*answer, error) {
	name, id := c.param("certificateName"), c.target.id
	return c.changeLoadBalancerThen("DeleteCertificate", func(cl *cloud, v *loadbalancer.LoadBalancer) error {
		if _, exists := v.Certificates[name]; !exists {
			return errNotFound()
		}
		err := tlsUsers(v, func(ssl *loadbalancer.SslConfiguration) error {
			if value(ssl.CertificateName) == name {
				return cl.rule(CertificateInUse, name)
			}
			return nil
		})
		if err != nil {
			return err
		}
		delete(v.Certificates, name)
		return nil
	}, func(cl *cloud, _ *loadbalancer.LoadBalancer) error {
		cl.balancers.dropKey(id, name)
		return nil
	})
}
