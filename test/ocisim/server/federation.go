// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// federation answers POST /v1/x509: an instance shows the certificate that its metadata service gave it, proves that it
// has the key, and gets a security token for a session key of its own.
type federation struct {
	identity *identity
	tokens   *tokens
	source   *source
}

// sha256Fingerprint is the only value of fingerprintAlgorithm. A client that
// leaves it out has the SHA-1 fingerprint in its key id.
const sha256Fingerprint = "SHA256"

// federationRequest is the body of POST /v1/x509. All values are PEM without armour and newlines.
type federationRequest struct {
	Certificate              string   `json:"certificate"`
	PublicKey                string   `json:"publicKey"`
	IntermediateCertificates []string `json:"intermediateCertificates"`
	FingerprintAlgorithm     string   `json:"fingerprintAlgorithm"`
}

func (f *federation) answer(w http.ResponseWriter, r *http.Request, body []byte) (who string) {
	token, who, err := f.grant(r, body)
	if err != nil {
		writeRefusal(w, err)
		return who
	}
	writeJSON(w, http.StatusOK, map[string]string{"token": token})
	return who
}

func (f *federation) grant(r *http.Request, body []byte) (token, who string, err error) {
	var request federationRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return "", "", refuse(http.StatusBadRequest, "CannotParseRequest", err.Error())
	}
	switch request.FingerprintAlgorithm {
	case "", sha256Fingerprint:
	default:
		return "", "", refuse(http.StatusBadRequest, "InvalidParameter", "fingerprintAlgorithm must be SHA256, or absent")
	}
	session, err := parsePublicKey(request.PublicKey)
	if err != nil {
		return "", "", refuse(http.StatusBadRequest, "InvalidParameter", "publicKey: "+err.Error())
	}
	leaf, err := parseBareCertificate(request.Certificate)
	if err != nil {
		return "", "", refuse(http.StatusBadRequest, "InvalidParameter", "certificate: "+err.Error())
	}
	instance, err := f.authenticate(r, body, leaf, request)
	if err != nil {
		return "", "", refuse(http.StatusUnauthorized, "NotAuthenticated", err.Error())
	}
	token, err = f.tokens.issue(map[string]any{
		"iss":             tokenIssuer,
		"sub":             instance.id,
		"aud":             "oci",
		"opc-certtype":    "instance",
		"opc-instance":    instance.id,
		"opc-compartment": instance.compartment,
		"opc-tenant":      instance.tenancy,
		"tenant":          instance.tenancy,
		"fprint":          strings.ToUpper(certificateFingerprint(leaf)),
		"ptype":           "instance",
		"ttype":           "x509",
	}, session, ocisim.Principal{ID: instance.id, Tenancy: instance.tenancy}, 0)
	return token, instance.id, err
}

// authenticate checks certificate, key id and signature, and finds the instance.
func (f *federation) authenticate(r *http.Request, body []byte, leaf *x509.Certificate, request federationRequest) (instanceView, error) {
	chain := make([]*x509.Certificate, 0, len(request.IntermediateCertificates))
	for _, text := range request.IntermediateCertificates {
		cert, err := parseBareCertificate(text)
		if err != nil {
			return instanceView{}, fmt.Errorf("intermediate certificate: %w", err)
		}
		chain = append(chain, cert)
	}
	statements, err := f.identity.verify(leaf, chain)
	if err != nil {
		return instanceView{}, err
	}
	signed, err := ocisim.ParseSignature(r.Header.Get("Authorization"))
	if err != nil {
		return instanceView{}, err
	}
	want := statements.tenancy + "/fed-x509-sha256/" + certificateFingerprint(leaf)
	if request.FingerprintAlgorithm == "" { // oci-common 2.139.1 of the TypeScript SDK
		want = statements.tenancy + "/fed-x509/" + oldCertificateFingerprint(leaf)
	}
	if signed.KeyID != want {
		return instanceView{}, fmt.Errorf("%w: keyId is %q, the certificate needs %q", ocisim.ErrSignature, signed.KeyID, want)
	}
	// Unlike everywhere else, the host header is not part of the signature.
	required := []string{"date", "(request-target)", "content-length", "content-type", "x-content-sha256"}
	if err := signed.Verify(signedRequest(r, body), statements.key, time.Now(), required); err != nil {
		return instanceView{}, err
	}
	return f.source.instance(statements.instance)
}

// parseBareCertificate reads a certificate without PEM armour.
func parseBareCertificate(text string) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
