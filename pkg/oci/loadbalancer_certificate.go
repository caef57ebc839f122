// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"net/http"

	lb "github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// CreateCertificate adds a certificate bundle. Listeners and backend sets may name it when the work request has ended.
func (s *LoadBalancers) CreateCertificate(ctx context.Context, id string, c Certificate, token string) (string, error) {
	request := lb.CreateCertificateRequest{
		LoadBalancerId:           &id,
		OpcRetryToken:            retryToken(token),
		CreateCertificateDetails: lb.CreateCertificateDetails(lbCertificateDetails(c)),
	}
	return s.change(ctx, "CreateCertificate", "load_balancer_certificate", "create", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.CreateCertificate(ctx, request)
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

// DeleteCertificate removes a certificate bundle. One that a listener or a backend set names is ErrConflict.
func (s *LoadBalancers) DeleteCertificate(ctx context.Context, id, name string) (string, error) {
	return s.change(ctx, "DeleteCertificate", "load_balancer_certificate", "delete", func(ctx context.Context) (*string, *http.Response, error) {
		r, err := s.client.loadBalancer.DeleteCertificate(ctx, lb.DeleteCertificateRequest{LoadBalancerId: &id, CertificateName: &name})
		return r.OpcWorkRequestId, r.RawResponse, err
	})
}

func lbCertificateFromSDK(name string, c lb.Certificate) Certificate {
	return Certificate{Name: name, Public: value(c.PublicCertificate), CA: value(c.CaCertificate)}
}

// lbCertificates are the bundles of a create; nil for none.
func lbCertificates(certificates map[string]Certificate) map[string]lb.CertificateDetails {
	if len(certificates) == 0 {
		return nil
	}
	out := make(map[string]lb.CertificateDetails, len(certificates))
	for name, c := range certificates {
		out[name] = lbCertificateDetails(c)
	}
	return out
}

func lbCertificateDetails(c Certificate) lb.CertificateDetails {
	return lb.CertificateDetails{
		CertificateName:   &c.Name,
		PublicCertificate: present(c.Public),
		CaCertificate:     present(c.CA),
		PrivateKey:        present(string(c.Key)),
		Passphrase:        present(string(c.Passphrase)),
	}
}
