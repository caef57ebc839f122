// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// listen opens all ports and serves them.
func (s *Server) listen(identity *identity) error {
	api := s.apiServer(identity)
	s.servers = append(s.servers, api)
	listener, err := s.open(s.options.Addr, &s.addr)
	if err != nil {
		return err
	}
	s.serveTLS(api, listener)

	tunnels := newHandoff(listener.Addr())
	s.serveTLS(api, tunnels)
	s.proxy = &proxy{
		domains:      s.domains(),
		passLoopback: s.options.PassLoopback,
		tls:          tunnels,
		plain:        s.serveMetadataTunnels(listener.Addr()),
		metadata:     s.metadata,
		log:          s.log,
		record:       s.edge.record,
	}
	if err := s.servePlain(s.options.Proxy, &s.proxyAddr, s.proxy); err != nil {
		return err
	}
	if err := s.servePlain(s.options.Metadata, &s.metadataAddr, s.metadata.handler("")); err != nil {
		return err
	}
	if s.options.Proxymux != "" {
		if err := s.serveProxymux(); err != nil {
			return err
		}
	}
	if host, _, err := net.SplitHostPort(s.options.Admin); s.options.Admin != "" && (err != nil || !isLoopback(host)) {
		return fmt.Errorf("admin API: %q is not a loopback address", s.options.Admin)
	}
	return s.servePlain(s.options.Admin, &s.adminAddr, s.adminHandler())
}

// domains are the second-level domains whose hosts are simulated.
func (s *Server) domains() []string {
	domains := []string{s.realmDomain()}
	for _, d := range append([]string{"oraclecloud.com"}, s.options.Domains...) {
		d = strings.ToLower(strings.Trim(d, "."))
		if d != domains[0] {
			domains = append(domains, d)
		}
	}
	return domains
}

func (s *Server) realmDomain() string {
	if s.options.RealmDomain != "" {
		return strings.ToLower(s.options.RealmDomain)
	}
	return realmDomain(s.region.Options().Realm)
}

func (s *Server) serveProxymux() error {
	handler := &workloads{
		tokens:  s.tokens,
		tenancy: s.region.Options().Tenancy,
		cluster: s.cluster(),
		basic:   s.options.BasicCluster,
		record:  s.edge.record,
	}
	server := s.newServer(handler)
	server.TLSConfig = s.ca.tlsConfig("http/1.1")
	s.servers = append(s.servers, server)
	listener, err := s.open(s.options.Proxymux, &s.proxymuxAddr)
	if err != nil {
		return err
	}
	s.serveTLS(server, listener)
	return nil
}

func (s *Server) cluster() string {
	if s.options.Cluster != "" {
		return s.options.Cluster
	}
	o := s.region.Options()
	return "ocid1.cluster." + o.Realm + "." + o.RegionKey + ".aaaaaaaasimulatedcluster"
}

func (s *Server) open(addr string, actual *string) (net.Listener, error) {
	if addr == "" {
		addr = anyPort
	}
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	*actual = s.advertised(listener.Addr().String())
	return listener, nil
}

// advertised is the address to give to clients: a listener on all interfaces needs a host that means something to them.
func (s *Server) advertised(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		return addr
	}
	if s.options.Advertise != "" {
		return net.JoinHostPort(s.options.Advertise, port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// newServer has no write timeout: an answer may be held by a Stop for as long as a test wants.
func (s *Server) newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          errorLog(s.log),
	}
}

func (s *Server) servePlain(addr string, actual *string, handler http.Handler) error {
	listener, err := s.open(addr, actual)
	if err != nil {
		return err
	}
	server := s.newServer(handler)
	s.servers = append(s.servers, server)
	s.wg.Go(func() { s.ended(server.Serve(listener)) })
	return nil
}

func (s *Server) serveTLS(server *http.Server, listener net.Listener) {
	s.wg.Go(func() { s.ended(server.ServeTLS(listener, "", "")) })
}

func (s *Server) ended(err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.log.Error(err, "A listener ended")
	}
}

// ServeInstance opens one more metadata listener that answers for the given instance, and returns its base URL for
// OCI_METADATA_BASE_URL.
func (s *Server) ServeInstance(addr, instance string) (string, error) {
	var actual string
	listener, err := s.open(addr, &actual)
	if err != nil {
		return "", fmt.Errorf("server: %w", err)
	}
	server := s.newServer(s.metadata.handler(instance))
	s.mu.Lock()
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	s.wg.Go(func() { s.ended(server.Serve(listener)) })
	return "http://" + actual + metadataPrefix, nil
}

// realmDomain is the second-level domain of a realm. Realms above the fourth are named by a rule that the SDK's table
// follows, with one exception; a realm that does not exist gets the domain that the SDK falls back to.
func realmDomain(realm string) string {
	switch realm {
	case "oc1":
		return "oraclecloud.com"
	case "oc2", "oc3":
		return "oraclegovcloud.com"
	case "oc4":
		return "oraclegovcloud.uk"
	case "oc19":
		return "oraclecloud.eu"
	}
	number, ok := strings.CutPrefix(realm, "oc")
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return "oraclecloud.com"
	}
	return "oraclecloud" + number + ".com"
}
