// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// The world that the simulator's speed is measured on.
const (
	manyInstances = 5000
	manyBalancers = 2000
	reads         = 10_000
	cores         = 2
)

// Budgets of the simulator.
const (
	seedBudget     = 2 * time.Second
	readBudget     = 5000 // verified reads a second on two cores
	instanceBudget = 16 << 10
	balancerBudget = 16 << 10
)

func simulatorRows() []row {
	return []row{
		{
			name: "S1", what: fmt.Sprintf("ocisim: seed %d instances and %d balancers, CPU time", manyInstances, manyBalancers),
			budget: seedBudget.String(), measure: measureSeed,
		},
		{
			name: "S2", what: "ocisim: verified reads per second on 2 cores, signed beforehand", budget: fmt.Sprintf(">= %d", readBudget),
			measure: func(ctx context.Context) (string, bool, error) { return measureReads(ctx, true) },
		},
		{
			name: "S3", what: "ocisim: reads per second on 2 cores in process, without signatures", budget: fmt.Sprintf(">= %d", readBudget),
			measure: func(ctx context.Context) (string, bool, error) { return measureReads(ctx, false) },
		},
		{
			name: "S4", what: "ocisim: memory of an instance and of a balancer",
			budget:  fmt.Sprintf("%d KiB, %d KiB", instanceBudget>>10, balancerBudget>>10),
			measure: measureMemory,
		},
	}
}

func network(options ocisim.Options) *ocisim.Region {
	region := ocisim.New(options)
	region.AddVCN(ocisim.VCN{Name: "net"})
	region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.0.0/16"})
	return region
}

func addInstances(region *ocisim.Region) {
	region.AddInstance(ocisim.Instance{Name: "node-%d", Count: manyInstances, VNIC: ocisim.VNIC{Subnet: "nodes"}})
}

// addBalancers adds balancers with a listener and ten backends each.
func addBalancers(region *ocisim.Region) {
	backends := make([]ocisim.Backend, 0, 10)
	for i := range 10 {
		backends = append(backends, ocisim.Backend{Instance: fmt.Sprintf("node-%d", i+1), Port: 30080})
	}
	region.AddLoadBalancer(ocisim.LoadBalancer{
		Name: "service-%d", Count: manyBalancers, Private: true,
		BackendSets: []ocisim.BackendSet{{Name: "TCP-80", Backends: backends}}, Listeners: []ocisim.Listener{{Port: 80}},
	})
}

// cpuTime is what this process has used of all CPUs.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// timed runs something and returns the CPU time that it took.
func timed(work func() error) (time.Duration, error) {
	runtime.GC()
	before, err := cpuTime()
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	after, err := cpuTime()
	return after - before, err
}

func measureSeed(context.Context) (string, bool, error) {
	began := time.Now()
	took, err := timed(func() error {
		region := network(ocisim.Options{})
		addInstances(region)
		addBalancers(region)
		return nil
	})
	return fmt.Sprintf("%.2f s (wall %.2f s)", took.Seconds(), time.Since(began).Seconds()), took < seedBudget, err
}

// answer is a response writer that keeps nothing but the status.
type answer struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// measureReads asks for instances, each request with a signature of its own, made before the clock runs.
func measureReads(ctx context.Context, verified bool) (string, bool, error) {
	region := network(ocisim.Options{Signatures: verified})
	addInstances(region)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", false, fmt.Errorf("make a key: %w", err)
	}
	keyID := region.Options().Tenancy + "/bench/20:3b:97:13"
	region.RegisterKey(keyID, &key.PublicKey, ocisim.Principal{ID: "bench"})
	instances := region.Instances()
	requests := make([]*http.Request, 0, reads)
	for i := range reads {
		uri := "https://iaas.us-ashburn-1.oraclecloud.com/20160918/instances/" + *instances[i%len(instances)].Id
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, http.NoBody)
		if err != nil {
			return "", false, fmt.Errorf("make a request: %w", err)
		}
		req.RequestURI, req.Host = req.URL.RequestURI(), req.URL.Host
		if verified {
			// A nonce in the opc-request-id of every request makes every signature another one.
			req.Header.Set("Opc-Request-Id", fmt.Sprintf("%032x", i))
			if err := sign(req, keyID, key); err != nil {
				return "", false, err
			}
		}
		requests = append(requests, req)
	}
	took, err := timed(func() error {
		var callers errgroup.Group
		for i := range cores {
			callers.Go(func() error { return send(region, requests[i*reads/cores:(i+1)*reads/cores], verified) })
		}
		return callers.Wait()
	})
	if err != nil {
		return "", false, err
	}
	rate := cores * reads / took.Seconds()
	return fmt.Sprintf("%.0f (%.0f µs of CPU each)", rate, took.Seconds()/reads*1e6), rate >= readBudget, nil
}

// send makes the requests: through the server's handler, or without HTTP.
func send(region *ocisim.Region, requests []*http.Request, handler bool) error {
	transport := region.Transport()
	for _, req := range requests {
		if handler {
			a := answer{header: http.Header{}}
			if region.ServeHTTP(&a, req); a.status != http.StatusOK {
				return fmt.Errorf("answered %d", a.status)
			}
			continue
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("answered %d", res.StatusCode)
		}
	}
	return nil
}

// sign signs a request as the SDKs do (draft-cavage-http-signatures-08), and its opc-request-id too.
func sign(req *http.Request, keyID string, key *rsa.PrivateKey) error {
	req.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	names := []string{"date", "(request-target)", "host", "opc-request-id"}
	text := strings.Join([]string{
		"date: " + req.Header.Get("Date"), "(request-target): get " + req.RequestURI, "host: " + req.Host,
		"opc-request-id: " + req.Header.Get("Opc-Request-Id"),
	}, "\n")
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `Signature version="1",headers="%s",keyId="%s",algorithm="rsa-sha256",signature="%s"`,
		strings.Join(names, " "), keyID, base64.StdEncoding.EncodeToString(signature))
	req.Header.Set("Authorization", b.String())
	return nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func measureMemory(context.Context) (string, bool, error) {
	region := network(ocisim.Options{})
	empty := heap()
	addInstances(region)
	withInstances := heap()
	addBalancers(region)
	withBalancers := heap()
	runtime.KeepAlive(region)
	instance, balancer := (withInstances-empty)/manyInstances, (withBalancers-withInstances)/manyBalancers
	measured := fmt.Sprintf("%.1f KiB, %.1f KiB", float64(instance)/1024, float64(balancer)/1024)
	return measured, instance <= instanceBudget && balancer <= balancerBudget, nil
}
