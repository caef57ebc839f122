// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"testing"
)

// tunnelClient sends every request through a CONNECT tunnel of the proxy, plain HTTP too.
func tunnelClient(t *testing.T, s *Server, instance string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, target string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, s.proxyAddr)
		if err != nil {
			return nil, err
		}
		credentials := base64.StdEncoding.EncodeToString([]byte(instance + ":"))
		if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n",
			target, target, credentials); err != nil {
			return nil, err
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("CONNECT %s: %s", target, response.Status)
		}
		return conn, nil
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestMetadataThroughATunnel(t *testing.T) {
	s := start(t, Options{})
	for _, instance := range []string{"node-2", "node-3"} {
		c := tunnelClient(t, s, instance)
		for range 2 { // the second on the same connection
			response, body := do(t, c, metadataRequest(t, "http://169.254.169.254/opc/v2/instance/displayName"))
			want(t, response, body, http.StatusOK, instance)
		}
	}
	first := *s.Region().Instances()[0].DisplayName
	response, body := do(t, tunnelClient(t, s, ""), metadataRequest(t, "http://169.254.169.254/opc/v2/instance/displayName"))
	want(t, response, body, http.StatusOK, first)
}
