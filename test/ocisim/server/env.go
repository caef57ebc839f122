// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/url"
	"strings"
)

// Env is the environment that makes an unmodified SDK program talk to this server: both proxies, the hosts it must
// reach directly (its API server, the service network), the CA for Go programs as a whole and for the SDK alone, and
// the CA and the use of the proxies for Node.js, which does neither by itself (NODE_USE_ENV_PROXY from 22.21 and 24.5).
// It stands for the default instance of the world. Lower-case variables of the parent do no harm: Go reads the
// upper-case ones first.
func (s *Server) Env(noProxy ...string) []string { return s.env("", noProxy) }

// InstanceEnv is Env for a program that runs on the given instance (OCID or display name): the name travels as the
// user of the proxy's URL, and the metadata service answers for that instance.
func (s *Server) InstanceEnv(instance string, noProxy ...string) []string {
	return s.env(instance, noProxy)
}

func (s *Server) env(instance string, noProxy []string) []string {
	proxy := &url.URL{Scheme: "http", Host: s.proxyAddr}
	if instance != "" {
		proxy.User = url.User(instance)
	}
	return []string{
		"HTTPS_PROXY=" + proxy.String(),
		"HTTP_PROXY=" + proxy.String(),
		"NO_PROXY=" + strings.Join(append([]string{"localhost", "127.0.0.1"}, noProxy...), ","),
		"SSL_CERT_FILE=" + s.CAFile(),
		"OCI_DEFAULT_CERTS_PATH=" + s.CAFile(),
		"NODE_EXTRA_CA_CERTS=" + s.CAFile(),
		"NODE_USE_ENV_PROXY=1",
	}
}
