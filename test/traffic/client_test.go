// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// patience bounds one request. It is far above what a busy machine needs, and far below what a retransmission for ever takes.
const patience = time.Minute

// errAnswer is an answer that is not the one to the request.
var errAnswer = errors.New("wrong answer")

// client sends requests to one address. It belongs to one goroutine, which is in the namespace of the clients.
type client struct {
	address string
	tls     *tls.Config // nil: plain
	conn    net.Conn
	plain   net.Conn // below TLS
	in      *bufio.Reader
	sent    int
	label   string
}

// connect opens a connection: one attempt.
func (c *client) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	c.plain, c.conn = conn, conn
	if c.tls != nil {
		secure := tls.Client(conn, c.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			c.conn = nil
			return fmt.Errorf("TLS: %w", err)
		}
		c.conn = secure
	}
	c.in = bufio.NewReader(c.conn)
	return nil
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask sends a request, on the open connection or on a new one, and reads the answer. After an error the connection is closed.
func (c *client) ask(ctx context.Context) (a answer, local netip.AddrPort, err error) {
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return a, local, err
		}
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	local = c.plain.LocalAddr().(*net.TCPAddr).AddrPort()
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return a, local, err
	}
	c.sent++
	path := fmt.Sprintf("/%s/%d", c.label, c.sent)
	if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: web.example.com\r\n\r\n", path); err != nil {
		return a, local, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return a, local, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return a, local, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, local, fmt.Errorf("%w: %d %q", errAnswer, res.StatusCode, text)
	}
	if res.StatusCode != http.StatusOK || a.Request != path {
		return a, local, fmt.Errorf("%w to %s: %d %q", errAnswer, path, res.StatusCode, text)
	}
	return a, local, nil
}

// crowd is many clients that send requests all the time.
type crowd struct {
	l      *lab
	ctx    context.Context
	cancel context.CancelFunc
	jobs   sync.WaitGroup

	mu      sync.Mutex
	streams []*stream
	step    string // what the test is doing
}

// stream is one client of a crowd.
type stream struct {
	name  string
	pause time.Duration // between the answer and the next request
	reuse int           // requests on one connection

	// Guarded by the lock of the crowd.
	answered int
	cycles   int // connections that ended after their last request
	pods     map[string]int
	peers    map[netip.Addr]int // addresses from which pods saw requests come
	losses   []string
	serials  map[string]int // of certificates that the balancer showed
}

func (l *lab) newCrowd() *crowd {
	ctx, cancel := context.WithCancel(l.ctx)
	c := &crowd{l: l, ctx: ctx, cancel: cancel, step: "the start"}
	l.t.Cleanup(c.stop)
	return c
}

func (c *crowd) stop() {
	c.cancel()
	c.jobs.Wait()
}

// add lets clients of a balancer's port begin: fresh ones, with a connection for each request, and lasting ones, with some
// requests on each connection.
func (c *crowd) add(name, address string, tlsConfig *tls.Config, fresh, lasting int) {
	for i := range fresh + lasting {
		s := &stream{
			name: fmt.Sprintf("%s %d", name, i), pause: 5 * time.Millisecond, reuse: 1,
			pods: map[string]int{}, peers: map[netip.Addr]int{}, serials: map[string]int{},
		}
		if i >= fresh {
			s.reuse = 25
		}
		c.mu.Lock()
		c.streams = append(c.streams, s)
		c.mu.Unlock()
		asking := &client{address: address, tls: tlsConfig, label: fmt.Sprintf("%d", i)}
		c.jobs.Go(func() { c.send(s, asking) })
	}
}

// send is the life of a client.
func (c *crowd) send(s *stream, asking *client) {
	if err := enterSpace(clientSpace); err != nil {
		c.lost(s, err)
		return
	}
	defer asking.close()
	for c.ctx.Err() == nil {
		for range s.reuse {
			a, _, err := asking.ask(c.ctx)
			if c.ctx.Err() != nil {
				return
			}
			if err != nil {
				c.lost(s, err)
				time.Sleep(20 * s.pause)
				break
			}
			c.answered(s, asking, a)
			time.Sleep(s.pause)
		}
		asking.close()
		c.mu.Lock()
		s.cycles++
		c.mu.Unlock()
	}
}

func (c *crowd) lost(s *stream, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.losses = append(s.losses, fmt.Sprintf("%s: %s, during %s: %v", time.Now().Format("15:04:05.000"), s.name, c.step, err))
}

func (c *crowd) answered(s *stream, asking *client, a answer) {
	peer, err := netip.ParseAddrPort(a.Peer)
	if err != nil {
		c.lost(s, fmt.Errorf("%w: peer: %w", errAnswer, err))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.answered++
	s.pods[a.Pod]++
	s.peers[peer.Addr()]++
	if secure, ok := asking.conn.(*tls.Conn); ok {
		s.serials[secure.ConnectionState().PeerCertificates[0].SerialNumber.String()]++
	}
}

// during names what the test is about to do, and forgets which pods and nodes have answered.
func (c *crowd) during(step string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = step
	for _, s := range c.streams {
		clear(s.pods)
		clear(s.peers)
		clear(s.serials)
	}
	c.l.t.Logf("%s  %s", time.Now().Format("15:04:05.000"), step)
}

// each calls a function for each client, with the lock held.
func (c *crowd) each(do func(*stream)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		do(s)
	}
}

// rounds waits until every client has closed n connections and got n answers.
func (c *crowd) rounds(n int) {
	c.l.t.Helper()
	answered, cycles := map[*stream]int{}, map[*stream]int{}
	c.each(func(s *stream) { answered[s], cycles[s] = s.answered+n, s.cycles+n })
	c.l.until(fmt.Sprintf("%d rounds of all clients", n), func() (bool, string) {
		slow := ""
		c.each(func(s *stream) {
			if s.answered < answered[s] || s.cycles < cycles[s] {
				slow = s.name
			}
		})
		return slow == "", slow
	})
}

// noneLost reports what has been lost so far, once.
func (c *crowd) noneLost() {
	c.l.t.Helper()
	var all []string
	total := 0
	c.each(func(s *stream) {
		all, total = append(all, s.losses...), total+s.answered
		s.losses = nil
	})
	if len(all) > 0 {
		for _, text := range all[:min(len(all), 20)] {
			c.l.t.Errorf("lost: %s", text)
		}
		c.l.t.Fatalf("%d requests were lost, %d answered, during %s", len(all), total, c.step)
	}
}
