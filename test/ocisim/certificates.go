// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/oracle/oci-go-sdk/v65/certificates"
	"github.com/oracle/oci-go-sdk/v65/certificatesmanagement"
	"github.com/oracle/oci-go-sdk/v65/common"
)

// Names of the two services of Certificates: one manages, one hands out what is in a certificate or a bundle.
const (
	ServiceCertificatesManagement = "certificatesmanagement"
	ServiceCertificates           = "certificates"
)

const certificatesRoot = "/20210224"

// certificate is a certificate with its one version. The service calls it a leaf certificate.
type certificate struct {
	certificatesmanagement.Certificate
	pem, chain, key string
}

var leafCertificates = newKind(kindInfo{
	ocidType: "certificate", label: "certificate", policy: "leaf-certificates",
	render: func(v any) any {
		if c, ok := v.(*certificate); ok {
			return c.Certificate
		}
		return v
	},
}, func(v *certificate) facets {
	return facets{id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.Name), state: string(v.LifecycleState)}
})

// caBundle is a bundle of CA certificates. GetCaBundle is an operation of both services at one path, so the answer
// has the fields of both.
type caBundle struct {
	certificatesmanagement.CaBundle
	pem string
}

// shownBundle is a bundle as both services show it.
type shownBundle struct {
	ID             *string                                           `json:"id"`
	Name           *string                                           `json:"name"`
	TimeCreated    *common.SDKTime                                   `json:"timeCreated"`
	LifecycleState certificatesmanagement.CaBundleLifecycleStateEnum `json:"lifecycleState"`
	CompartmentID  *string                                           `json:"compartmentId"`
	Description    *string                                           `json:"description"`
	FreeformTags   map[string]string                                 `json:"freeformTags"`
	DefinedTags    map[string]map[string]interface{}                 `json:"definedTags"`
	CaBundlePem    *string                                           `json:"caBundlePem"`
}

var caBundles = newKind(kindInfo{
	ocidType: "cabundle", label: "CA bundle", policy: "cabundles",
	keep: []string{"id", "name", "timeCreated", "lifecycleState", "compartmentId", "caBundlePem"},
	render: func(v any) any {
		b, ok := v.(*caBundle)
		if !ok {
			return v
		}
		return shownBundle{
			b.Id, b.Name, b.TimeCreated, b.LifecycleState, b.CompartmentId, b.Description, b.FreeformTags, b.DefinedTags, common.String(b.pem),
		}
	},
}, func(v *caBundle) facets {
	return facets{id: value(v.Id), compartment: value(v.CompartmentId), name: value(v.Name), state: string(v.LifecycleState)}
})

func certificatesManagementService() service {
	op := func(name, path, query string, verb Verb, kind *kindInfo, handle func(*call) (*answer, error)) Operation {
		return Operation{
			Service: ServiceCertificatesManagement, Name: name, Method: http.MethodGet, Path: certificatesRoot + path, Query: query,
			Verb: verb, Resource: kind.policy, handle: handle,
		}
	}
	certificate := op("GetCertificate", "/certificates/{certificateId}", "", Read, leafCertificates.kindInfo, (*call).showTarget)
	certificate.Target = leafCertificates.kindInfo
	bundle := op("GetCaBundle", "/caBundles/{caBundleId}", "", Read, caBundles.kindInfo, (*call).showTarget)
	bundle.Target = caBundles.kindInfo
	list := op("ListCertificates", "/certificates",
		"compartmentId,lifecycleState,name,sortBy,sortOrder,limit,page,issuerCertificateAuthorityId,certificateId", Inspect,
		leafCertificates.kindInfo, listLeafCertificates)
	list.Partial = "not in the order of expiration"
	return service{operations: []Operation{
		certificate, list, bundle,
		op("ListCaBundles", "/caBundles", "compartmentId,lifecycleState,name,sortBy,sortOrder,limit,page,caBundleId", Inspect,
			caBundles.kindInfo, listCABundles),
	}}
}

// certificatesService has no GetCaBundle of its own: it is at the path of the one above.
func certificatesService() service {
	return service{operations: []Operation{{
		Service: ServiceCertificates, Name: "GetCertificateBundle", Method: http.MethodGet,
		Path: certificatesRoot + "/certificateBundles/{certificateId}", Query: "versionNumber,certificateVersionName,stage,certificateBundleType",
		Verb: Read, Resource: "leaf-certificate-bundles", Target: leafCertificates.kindInfo,
		Partial: "every certificate has one version", handle: getCertificateBundle,
	}}}
}

// listNamed lists by compartment; without one, the identifier must be named.
func (c *call) listNamed(kind *kindInfo, id string, match func(*resource) bool, render func(*resource) any) (*answer, error) {
	compartment, name := c.query.Get("compartmentId"), c.query.Get("name")
	if compartment == "" && id == "" {
		return nil, errMissing("compartmentId")
	}
	return c.list(listing{kind: kind, key: compartment, items: true, render: render, match: func(res *resource) bool {
		return (id == "" || res.id == id) && (name == "" || res.name == name) && (match == nil || match(res)) &&
			(compartment != "" || !c.denied(kind.policy, Inspect, res.compartment))
	}})
}

func listLeafCertificates(c *call) (*answer, error) {
	issuer := c.query.Get("issuerCertificateAuthorityId")
	return c.listNamed(leafCertificates.kindInfo, c.query.Get("certificateId"),
		func(res *resource) bool {
			return issuer == "" || value(leafCertificates.of(res).IssuerCertificateAuthorityId) == issuer
		},
		func(res *resource) any {
			v := leafCertificates.of(res)
			summary := recast[certificatesmanagement.CertificateSummary](v.Certificate)
			summary.CurrentVersionSummary = v.CurrentVersion
			return summary
		})
}

func listCABundles(c *call) (*answer, error) {
	return c.listNamed(caBundles.kindInfo, c.query.Get("caBundleId"), nil, func(res *resource) any {
		return recast[certificatesmanagement.CaBundleSummary](caBundles.of(res).CaBundle)
	})
}

// getCertificateBundle hands out the certificate, and its key to those who ask for it and may have it.
func getCertificateBundle(c *call) (*answer, error) {
	v := leafCertificates.of(c.target)
	version := v.CurrentVersion
	if n := c.query.Get("versionNumber"); n != "" && n != strconv.FormatInt(*version.VersionNumber, 10) {
		return nil, errNotFound()
	}
	if name := c.query.Get("certificateVersionName"); name != "" && name != value(version.VersionName) {
		return nil, errNotFound()
	}
	if stage := c.query.Get("stage"); stage != "" && !slices.Contains(version.Stages, certificatesmanagement.VersionStageEnum(stage)) {
		return nil, errNotFound()
	}
	public := certificates.CertificateBundlePublicOnly{
		CertificateId: v.Id, CertificateName: v.Name, VersionNumber: version.VersionNumber, SerialNumber: version.SerialNumber,
		TimeCreated: version.TimeCreated, CertificatePem: common.String(v.pem), VersionName: version.VersionName,
		Validity: &certificates.Validity{
			TimeOfValidityNotBefore: version.Validity.TimeOfValidityNotBefore, TimeOfValidityNotAfter: version.Validity.TimeOfValidityNotAfter,
		},
		Stages: []certificates.VersionStageEnum{certificates.VersionStageCurrent, certificates.VersionStageLatest},
	}
	if v.chain != "" {
		public.CertChainPem = common.String(v.chain)
	}
	switch kind := c.query.Get("certificateBundleType"); certificates.GetCertificateBundleCertificateBundleTypeEnum(kind) {
	case "", certificates.GetCertificateBundleCertificateBundleTypePublicOnly:
		return c.send(http.StatusOK, public), nil
	case certificates.GetCertificateBundleCertificateBundleTypeWithPrivateKey:
		private := recast[certificates.CertificateBundleWithPrivateKey](public)
		private.PrivateKeyPem = common.String(v.key)
		return c.send(http.StatusOK, private), nil
	default:
		return nil, errInvalid("certificateBundleType %s is not valid", kind)
	}
}
