// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oracle/oci-go-sdk/v65/certificates"
	"github.com/oracle/oci-go-sdk/v65/certificatesmanagement"
	"github.com/oracle/oci-go-sdk/v65/common"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

func TestCertificates(t *testing.T) {
	f := newFixture(t, ocisim.Options{DropOptional: 0.5})
	id := f.region.AddCertificate(ocisim.Certificate{Name: "web.example.com", Tags: ocisim.Tags{Freeform: map[string]string{"a": "b"}}})
	f.region.AddCertificate(ocisim.Certificate{Name: "api.example.com"})
	bundle := f.region.AddCABundle(ocisim.CABundle{Name: "corporate"})
	ctx, provider := t.Context(), sdkProvider(f.region)
	management := try(certificatesmanagement.NewCertificatesManagementClientWithConfigurationProvider(provider)).must(t)
	retrieval := try(certificates.NewCertificatesClientWithConfigurationProvider(provider)).must(t)
	never := common.NoRetryPolicy()
	management.HTTPClient, management.Configuration.RetryPolicy = &http.Client{Transport: f.region.Transport()}, &never
	retrieval.HTTPClient, retrieval.Configuration.RetryPolicy = management.HTTPClient, &never

	got := try(management.GetCertificate(ctx, certificatesmanagement.GetCertificateRequest{CertificateId: &id})).must(t)
	if *got.Name != "web.example.com" || got.LifecycleState != certificatesmanagement.CertificateLifecycleStateActive || *got.Etag == "" ||
		got.ConfigType != certificatesmanagement.CertificateConfigTypeImported {
		t.Errorf("certificate %v", got.Certificate)
	}
	list := try(management.ListCertificates(ctx, certificatesmanagement.ListCertificatesRequest{
		CompartmentId: &f.compartment, SortBy: certificatesmanagement.ListCertificatesSortByName,
	})).must(t)
	if len(list.Items) != 2 || *list.Items[1].Id != id || *list.Items[1].CurrentVersionSummary.VersionNumber != 1 {
		t.Errorf("certificates %v", list.Items)
	}
	if one := try(management.ListCertificates(ctx, certificatesmanagement.ListCertificatesRequest{CertificateId: &id})).must(t); len(one.Items) != 1 {
		t.Errorf("certificates %v", one.Items)
	}
	_, err := management.ListCertificates(ctx, certificatesmanagement.ListCertificatesRequest{})
	refused(t, err, 400, "MissingParameter")

	bundles := try(management.ListCaBundles(ctx, certificatesmanagement.ListCaBundlesRequest{
		CompartmentId: &f.compartment, Name: common.String("corporate"),
	})).must(t)
	if len(bundles.Items) != 1 || *bundles.Items[0].Id != bundle {
		t.Errorf("bundles %v", bundles.Items)
	}
	managed := try(management.GetCaBundle(ctx, certificatesmanagement.GetCaBundleRequest{CaBundleId: &bundle})).must(t)
	content := try(retrieval.GetCaBundle(ctx, certificates.GetCaBundleRequest{CaBundleId: &bundle})).must(t)
	if managed.LifecycleState != certificatesmanagement.CaBundleLifecycleStateActive || *content.Name != "corporate" ||
		!x509.NewCertPool().AppendCertsFromPEM([]byte(*content.CaBundlePem)) {
		t.Errorf("bundle %v, %v", managed.CaBundle, content.CaBundle)
	}
	getCertificateBundles(t, retrieval, f.region, id)
}

// getCertificateBundles reads the content of a certificate, with and without its key.
func getCertificateBundles(t *testing.T, retrieval certificates.CertificatesClient, region *ocisim.Region, id string) {
	t.Helper()
	get := func(change func(*certificates.GetCertificateBundleRequest)) (certificates.GetCertificateBundleResponse, error) {
		request := certificates.GetCertificateBundleRequest{CertificateId: &id}
		if change != nil {
			change(&request)
		}
		return retrieval.GetCertificateBundle(t.Context(), request)
	}
	public, ok := try(get(nil)).must(t).CertificateBundle.(certificates.CertificateBundlePublicOnly)
	if !ok {
		t.Fatal("without a wish there is more than what is public")
	}
	private, ok := try(get(func(r *certificates.GetCertificateBundleRequest) {
		r.CertificateBundleType = certificates.GetCertificateBundleCertificateBundleTypeWithPrivateKey
		r.Stage = certificates.GetCertificateBundleStageCurrent
	})).must(t).CertificateBundle.(certificates.CertificateBundleWithPrivateKey)
	if !ok {
		t.Fatal("no key")
	}
	pair := try(tls.X509KeyPair([]byte(*public.CertificatePem), []byte(*private.PrivateKeyPem))).must(t)
	if err := pair.Leaf.VerifyHostname("web.example.com"); err != nil || pair.Leaf.NotAfter.Before(time.Now()) ||
		!public.Validity.TimeOfValidityNotAfter.Equal(pair.Leaf.NotAfter) {
		t.Errorf("certificate %v: %v", pair.Leaf.Subject, err)
	}
	for _, change := range []func(*certificates.GetCertificateBundleRequest){
		func(r *certificates.GetCertificateBundleRequest) { r.VersionNumber = common.Int64(2) },
		func(r *certificates.GetCertificateBundleRequest) {
			r.Stage = certificates.GetCertificateBundleStagePrevious
		},
		func(r *certificates.GetCertificateBundleRequest) { r.CertificateVersionName = common.String("v2") },
		func(r *certificates.GetCertificateBundleRequest) { r.CertificateId = common.String("none") },
	} {
		_, err := get(change)
		refused(t, err, 404, "NotAuthorizedOrNotFound")
	}
	restore := region.Deny(ocisim.Policy{Verb: ocisim.Read, ResourceType: "leaf-certificate-bundles"})
	_, err := get(nil)
	refused(t, err, 404, "NotAuthorizedOrNotFound")
	restore()
	err = region.Foreign().Certificate(id, func(c *certificatesmanagement.Certificate) {
		c.LifecycleState = certificatesmanagement.CertificateLifecycleStatePendingDeletion
	})
	if err != nil || region.Certificates()[0].LifecycleState != certificatesmanagement.CertificateLifecycleStatePendingDeletion {
		t.Errorf("changed: %v", err)
	}
}

// TestSeedCertificates seeds what is given, and makes the same things of the same seed.
func TestSeedCertificates(t *testing.T) {
	var snapshots [][]byte
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			region := ocisim.New(ocisim.Options{Seed: 3})
			region.AddCertificate(ocisim.Certificate{Name: "web.example.com"})
			region.AddCABundle(ocisim.CABundle{Name: "corporate"})
			c := newClient(t, region)
			body := c.get("/20210224/certificateBundles/" + *region.Certificates()[0].Id).want(http.StatusOK).body
			snapshots = append(snapshots, append(region.Snapshot(), body...))
			if v := region.Certificates()[0]; v.KeyAlgorithm != certificatesmanagement.KeyAlgorithmEcdsaP256 ||
				v.SignatureAlgorithm != certificatesmanagement.SignatureAlgorithmSha256WithEcdsa ||
				*v.CurrentVersion.SubjectAlternativeNames[0].Value != "web.example.com" {
				t.Errorf("certificate %v", v)
			}
		})
	}
	if !bytes.Equal(snapshots[0], snapshots[1]) {
		t.Error("two regions of one seed have different certificates")
	}
	region := ocisim.New(ocisim.Options{})
	key := try(x509.MarshalPKCS8PrivateKey(pki.SigningKey())).must(t)
	for _, bad := range []ocisim.World{
		{Certificates: []ocisim.Certificate{{Name: "x", PEM: "nothing"}}},
		{Certificates: []ocisim.Certificate{{Name: "x", PEM: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))}}},
		{CABundles: []ocisim.CABundle{{Name: "x", PEM: "nothing"}}},
	} {
		if region.Seed(bad) == nil {
			t.Errorf("seeded %v", bad)
		}
	}
}
