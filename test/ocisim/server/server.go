// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package server puts a simulated region on the network, in such a way that programs built on an OCI SDK use it
// without any change: they are only given environment variables (Server.Env).
//
// It runs
//   - a forward proxy that keeps the tunnels to OCI's host names for itself and answers for the instance metadata
//     address;
//   - a TLS listener for programs that can be given an endpoint, with all services told apart by path;
//   - the instance metadata service on a plain listener of its own, one for as many instances as wanted;
//   - the services that issue security tokens: federation of instance principals, token exchange, and the workload
//     identity service of OKE clusters;
//   - an admin API on a loopback port.
//
// The region itself is package ocisim; whoever runs in the same process uses it directly.
package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// anyPort is a listener on a free loopback port.
const anyPort = "127.0.0.1:0"

const (
	// defaultTokenLife is the life of a security token. Clients renew 5 minutes before the end.
	defaultTokenLife = time.Hour

	closeGrace = 2 * time.Second
)

// Options say what to serve and where. Addresses are host:port, empty for a free loopback port.
type Options struct {
	Region *ocisim.Region // required

	Addr     string // TLS, all services
	Proxy    string // forward proxy
	Metadata string // instance metadata service, plain HTTP
	Admin    string // admin API, plain HTTP; must be a loopback address
	Proxymux string // OKE workload identity, TLS; off when empty, because the SDK knows no other port than 12250

	// Advertise is the host by which clients reach listeners that are bound to all interfaces; default 127.0.0.1.
	Advertise string

	Dir string // CA and user keys are kept here; empty means a directory that Close removes

	// Instance is the OCID or display name of the instance that the metadata service answers for where the caller
	// does not name one; empty means the first instance of the world.
	Instance string

	RealmDomain  string        // second-level domain of the realm; default that of Region's realm
	Domains      []string      // second-level domains that the proxy takes over besides oraclecloud.com and the realm's own
	PassLoopback bool          // the proxy tunnels to loopback addresses instead of refusing
	TokenLife    time.Duration // life of security tokens; default 1 h
	Cluster      string        // OCID of the cluster in workload identity tokens; made up when empty
	BasicCluster bool          // the cluster has no workload identity

	// Clients are the client ids and secrets that may exchange tokens; nil accepts every pair.
	Clients map[string]string
}

// Server is a running simulator.
type Server struct {
	options  Options
	region   *ocisim.Region
	log      klog.Logger
	ca       *authority
	tokens   *tokens
	metadata *metadata
	hooks    *hooks
	changes  *broadcast // of the region's call log
	edge     edgeLog
	proxy    *proxy
	dir      string
	ownDir   bool

	addr, proxyAddr, metadataAddr, adminAddr, proxymuxAddr string

	ctx     context.Context // ends with Close; parent of all requests
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	servers []*http.Server
	closing sync.Once

	mu    sync.Mutex
	users map[string]*User
}

// Start serves until Close or until ctx is done. All listeners are up when it returns.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Region == nil {
		return nil, errors.New("server: Options.Region is missing")
	}
	if options.TokenLife <= 0 {
		options.TokenLife = defaultTokenLife
	}
	s := &Server{
		options: options,
		region:  options.Region,
		log:     klog.FromContext(ctx),
		hooks:   newHooks(),
		changes: newBroadcast(),
		users:   map[string]*User{},
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if err := s.start(); err != nil {
		s.Close()
		return nil, fmt.Errorf("server: %w", err)
	}
	context.AfterFunc(ctx, s.Close)
	return s, nil
}

func (s *Server) start() error {
	if err := s.openDir(); err != nil {
		return err
	}
	var err error
	if s.ca, err = loadAuthority(s.dir); err != nil {
		return err
	}
	if s.tokens, err = newTokens(s.region, s.options.TokenLife); err != nil {
		return err
	}
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	s.metadata = &metadata{
		source:   &source{region: s.region, fallback: s.options.Instance, realmDomain: s.realmDomain()},
		identity: identity,
		record:   s.edge.record,
	}
	s.region.OnCall(func(c ocisim.Call) {
		if log := s.log.V(2); log.Enabled() {
			log.Info("Call", "operation", c.Name(), "status", c.Status, "principal", c.Principal, "resource", c.Resource,
				"opcRequestID", c.RequestID, "reason", c.Reason)
		}
		s.changes.send()
		s.hooks.called(c)
	})
	return s.listen(identity)
}

// openDir prepares the directory for CA and keys.
func (s *Server) openDir() error {
	if s.options.Dir == "" {
		dir, err := os.MkdirTemp("", "ocisim-")
		if err != nil {
			return fmt.Errorf("create a state directory: %w", err)
		}
		s.dir, s.ownDir = dir, true
		return nil
	}
	dir, err := filepath.Abs(s.options.Dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	s.dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the state directory: %w", err)
	}
	return nil
}

// Close stops all listeners, drops held calls, and removes the state directory if it was a temporary one.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.hooks.close()
		s.cancel()
		s.mu.Lock()
		servers := s.servers
		s.mu.Unlock()
		var wg sync.WaitGroup
		for _, server := range servers {
			wg.Go(func() { stop(server) })
		}
		wg.Wait()
		if s.proxy != nil {
			s.proxy.close()
		}
		s.wg.Wait()
		if s.tokens != nil {
			s.tokens.expire()
		}
		if s.ownDir {
			if err := os.RemoveAll(s.dir); err != nil {
				s.log.Error(err, "State directory not removed", "dir", s.dir)
			}
		}
	})
}

// stop lets running answers finish for a moment, then closes their connections.
func stop(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close()
	}
}

// User returns the user of that name. A new one gets an API key, an OCI config file, and is known to the region.
func (s *Server) User(name string) (*User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.users[name]; ok {
		return u, nil
	}
	o := s.region.Options()
	u, err := writeUser(s.dir, name, userOCID(o.Realm, name), o.Tenancy, o.Region)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.region.RegisterKey(u.KeyID(), &u.key.PublicKey, ocisim.Principal{ID: u.OCID, Tenancy: u.Tenancy})
	s.users[name] = u
	return u, nil
}

// Users returns the users made so far, by name.
func (s *Server) Users() []*User {
	s.mu.Lock()
	defer s.mu.Unlock()
	users := make([]*User, 0, len(s.users))
	for _, name := range slices.Sorted(maps.Keys(s.users)) {
		users = append(users, s.users[name])
	}
	return users
}

// Region is the region that is served.
func (s *Server) Region() *ocisim.Region { return s.region }

// URL is the base URL of the TLS listener.
func (s *Server) URL() string { return "https://" + s.addr }

// ProxyURL is the forward proxy, without user.
func (s *Server) ProxyURL() string { return "http://" + s.proxyAddr }

// MetadataURL is the base URL of the metadata service, for OCI_METADATA_BASE_URL.
func (s *Server) MetadataURL() string { return "http://" + s.metadataAddr + metadataPrefix }

// AdminURL is the base URL of the admin API.
func (s *Server) AdminURL() string { return "http://" + s.adminAddr }

// ProxymuxAddr is the address of the workload identity service, empty when it is off.
func (s *Server) ProxymuxAddr() string { return s.proxymuxAddr }

// CAFile is the path of the CA certificate that clients must trust.
func (s *Server) CAFile() string { return filepath.Join(s.dir, caCertFile) }

// CAPEM is the CA certificate.
func (s *Server) CAPEM() []byte { return s.ca.certPEM }

// StopAfter arranges for a call to be held after it was applied.
func (s *Server) StopAfter(rule StopRule) (*Stop, error) { return s.hooks.add(rule) }

// SetMetadataFault replaces the fault of the metadata service; the zero value ends it.
func (s *Server) SetMetadataFault(f MetadataFault) { s.metadata.setFault(f) }

// ExpireTokens ends every security token issued so far: the next call of each holder is answered 401. It returns how
// many tokens that were.
func (s *Server) ExpireTokens() int { return s.tokens.expire() }

// EdgeCalls returns the calls that the server answered itself.
func (s *Server) EdgeCalls() []EdgeCall { return s.edge.list() }
