// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// fastestCheck is the shortest interval that Options.Speed leads to.
const fastestCheck = 5 * time.Millisecond

// maxCheckedBody is how much of an answer is searched for Check.body, in bytes.
const maxCheckedBody = 64 << 10

// checks checks a member until it is retired.
func (p *pool) checks(m *member) {
	for {
		p.mu.Lock()
		b, c, tls, from := m.backend, p.set.check, p.tls, p.from
		p.mu.Unlock()
		if !b.offline && c.known() {
			ctx, cancel := context.WithTimeout(p.body.ctx, max(c.timeout, time.Millisecond))
			err := p.body.probe(ctx, netip.AddrPortFrom(from, 0), b, c, tls)
			cancel()
			p.note(m, err, c.retries)
		}
		timer := time.NewTimer(p.body.paced(c.interval))
		select {
		case <-timer.C:
		case <-m.changed:
		case <-m.quit:
			timer.Stop()
			return
		case <-p.body.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (c check) known() bool {
	return c.protocol == "TCP" || c.protocol == "HTTP" || c.protocol == "HTTPS"
}

// paced is an interval of checks at the body's speed.
func (b *Body) paced(interval time.Duration) time.Duration {
	return max(time.Duration(float64(interval)/b.options.Speed), fastestCheck)
}

// note counts the result of a check. A backend is OK from its first success on; after a failure of so many checks in a row as
// the retries say it is CRITICAL, and OK again after as many successes.
func (p *pool) note(m *member, err error, retries int) {
	p.mu.Lock()
	before := m.health
	if err == nil {
		m.good, m.bad = m.good+1, 0
		if m.health == ocisim.HealthUnknown || m.good >= retries {
			m.health = ocisim.HealthOK
		}
	} else {
		m.good, m.bad = 0, m.bad+1
		if m.bad >= retries {
			m.health = ocisim.HealthCritical
		}
	}
	var ended []*session
	reset := p.set.reset
	if m.health != before {
		select {
		case <-m.quit: // retired meanwhile
		default:
			p.body.health.Store(p.nameOf(m), m.health)
			p.body.log.V(1).Info("Health of a backend", "balancer", p.balancer, "backendSet", p.set.name, "backend", m.name, "health", m.health, "err", err)
		}
		if m.health == ocisim.HealthCritical && p.set.instant {
			for s := range m.sessions {
				ended = append(ended, s)
			}
		}
	}
	p.mu.Unlock()
	endAll(ended, reset)
}

// errCheck is why a backend that answers is not healthy.
var errCheck = errors.New("check failed")

// probe makes one check of a backend.
func (b *Body) probe(ctx context.Context, from netip.AddrPort, to backend, c check, encrypt *backendTLS) error {
	if c.port != 0 {
		to.port = c.port
	}
	if c.plain {
		encrypt = nil
	}
	if c.protocol == "HTTPS" {
		encrypt = &backendTLS{config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the service does not verify either
	}
	connect := func(ctx context.Context) (net.Conn, error) { return b.connect(ctx, from, to, 0, nil, encrypt) }
	if c.protocol == "TCP" {
		return probeTCP(ctx, connect, c)
	}
	return probeHTTP(ctx, connect, to, c)
}

func probeTCP(ctx context.Context, connect func(context.Context) (net.Conn, error), c check) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if len(c.request) == 0 && len(c.response) == 0 {
		return nil
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("deadline of a check: %w", err)
	}
	if _, err := conn.Write(c.request); err != nil {
		return fmt.Errorf("send the data of a check: %w", err)
	}
	answer := make([]byte, len(c.response))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("read the answer to a check: %w", err)
	}
	if !bytes.Equal(answer, c.response) {
		return fmt.Errorf("%w: the answer is %q", errCheck, answer)
	}
	return nil
}

func probeHTTP(ctx context.Context, connect func(context.Context) (net.Conn, error), to backend, c check) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) },
	}
	defer transport.CloseIdleConnections()
	host := to.address
	if host == "" {
		host = "backend"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, fmt.Sprint(to.port))+c.path, nil)
	if err != nil {
		return fmt.Errorf("request of a check: %w", err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != c.code {
		return fmt.Errorf("%w: status %d", errCheck, res.StatusCode)
	}
	if c.body == "" {
		return nil
	}
	pattern, err := regexp.Compile(c.body)
	if err != nil {
		return fmt.Errorf("pattern of a check: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxCheckedBody))
	if err != nil {
		return fmt.Errorf("read the answer to a check: %w", err)
	}
	if !pattern.Match(text) {
		return fmt.Errorf("%w: the body does not match", errCheck)
	}
	return nil
}
