// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// maxAuthBody bounds the body of every token request, in bytes; real ones are below 10 kB.
const maxAuthBody = 64 << 10

// workloads answers POST /resourcePrincipalSessionTokens as the proxymux of an OKE cluster does: a pod shows its
// service-account token and a public key, and gets a security token for the pair.
type workloads struct {
	tokens  *tokens
	tenancy string
	cluster string // OCID of the cluster that the workloads belong to
	basic   bool   // a basic cluster has no workload identity: every request is 403
	record  func(EdgeCall)
}

func (h *workloads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
	token, who, err := h.grant(r)
	if err != nil {
		writeRefusal(recorder, err)
	} else {
		// The answer is a JSON string that holds base64 that holds JSON. Nothing may follow the closing quote: clients
		// cut the first and the last byte off.
		inner, _ := json.Marshal(map[string]string{"token": sessionKeyPrefix + token}) // strings always marshal
		recorder.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(recorder, `"`+base64.StdEncoding.EncodeToString(inner)+`"`)
	}
	h.record(EdgeCall{Kind: "proxymux", Target: r.URL.Path, Status: recorder.status, Principal: who})
}

// grant checks a request and issues its token. who is the service account, as soon as it is known.
func (h *workloads) grant(r *http.Request) (token, who string, err error) {
	switch {
	case r.URL.Path != "/resourcePrincipalSessionTokens":
		return "", "", refuse(http.StatusNotFound, "NotFound", "Not Found")
	case r.Method != http.MethodPost:
		return "", "", refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method+" is not allowed")
	case h.basic:
		return "", "", refuse(http.StatusForbidden, "NotAuthorized", "the cluster is not an enhanced cluster")
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	account, err := parseToken(bearer)
	if err != nil {
		return "", "", refuse(http.StatusUnauthorized, "NotAuthenticated", "service-account token: "+err.Error())
	}
	who, _ = account["sub"].(string)
	var body struct {
		PodKey string `json:"podKey"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxAuthBody)).Decode(&body); err != nil {
		return "", who, refuse(http.StatusBadRequest, "CannotParseRequest", err.Error())
	}
	session, err := parsePublicKey(body.PodKey)
	if err != nil {
		return "", who, refuse(http.StatusBadRequest, "InvalidParameter", "podKey: "+err.Error())
	}
	token, err = h.issue(who, session)
	return token, who, err
}

// issue makes the token of a service account, "system:serviceaccount:NAMESPACE:NAME".
func (h *workloads) issue(account string, session *rsa.PublicKey) (string, error) {
	namespace, name := "", ""
	if parts := strings.Split(account, ":"); len(parts) == 4 {
		namespace, name = parts[2], parts[3]
	}
	return h.tokens.issue(map[string]any{
		"iss":             tokenIssuer,
		"sub":             h.cluster + "/" + namespace + "/" + name,
		"aud":             "oci",
		"ttype":           "res",
		"ptype":           "resource",
		"res_type":        "workload",
		"res_tenant":      h.tenancy,
		"tenant":          h.tenancy,
		"opc-tenant":      h.tenancy,
		"k8s_namespace":   namespace,
		"service_account": name,
		"cluster_id":      h.cluster,
	}, session, ocisim.Principal{ID: account, Tenancy: h.tenancy}, 0)
}
