// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package webtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/webtest"
)

// patience bounds what a test waits for; nothing needs that long.
const patience = time.Minute

// newRegion fills a region that takes unsigned calls.
func newRegion(t *testing.T, seed string) *ocisim.Region {
	t.Helper()
	region := ocisim.New(ocisim.Options{Seed: 1})
	text, err := os.ReadFile(seed)
	if err != nil {
		t.Fatal(err)
	}
	world, err := server.ParseWorld(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := region.Seed(world); err != nil {
		t.Fatal(err)
	}
	return region
}

// serve serves a region; the admin API is at an address, or at a free port if that is empty.
func serve(t *testing.T, region *ocisim.Region, admin string) *server.Server {
	t.Helper()
	ctx := klog.NewContext(context.Background(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(0))))
	s, err := server.Start(ctx, server.Options{Region: region, Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// call calls an operation of the region in process and returns the status.
func call(t *testing.T, region *ocisim.Region, method, uri string, body any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "https://iaas.us-ashburn-1.oraclecloud.com"+uri, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := region.Transport().RoundTrip(request)
	if err != nil {
		return 0 // the connection broke
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// compartment is the first compartment below the tenancy.
func compartment(region *ocisim.Region) string { return *region.Compartments()[1].Id }

// listInstances is a read.
func listInstances(t *testing.T, region *ocisim.Region) int {
	t.Helper()
	return call(t, region, http.MethodGet, "/20160918/instances?compartmentId="+url.QueryEscape(compartment(region)), nil)
}

// createBalancer is a write with a work request.
func createBalancer(t *testing.T, region *ocisim.Region, name string) int {
	t.Helper()
	subnet := *region.Subnets()[0].Id
	return call(t, region, http.MethodPost, "/20170115/loadBalancers", map[string]any{
		"compartmentId": compartment(region), "displayName": name, "shapeName": "flexible", "subnetIds": []string{subnet},
		"shapeDetails": map[string]int{"minimumBandwidthInMbps": 10, "maximumBandwidthInMbps": 100},
	})
}

// tab is a page with a test: what fails ends the test.
type tab struct {
	*webtest.Page

	t        *testing.T
	accepted *[]string
}

// expected says what the page may complain about in this test: parts of the complaints.
func (p tab) expected(parts ...string) { *p.accepted = append(*p.accepted, parts...) }

// open opens a tab; at the end of the test it must not have complained about anything.
func open(t *testing.T, b *webtest.Browser, address string) tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	page, err := b.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	p := tab{Page: page, t: t, accepted: new([]string)}
	p.size(1280, 900)
	t.Cleanup(func() {
		for _, problem := range page.Problems() {
			if !slices.ContainsFunc(*p.accepted, func(part string) bool { return strings.Contains(problem, part) }) {
				t.Errorf("the page complains: %s", problem)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := page.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p tab) must(err error) {
	p.t.Helper()
	if err != nil {
		var text string
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Evaluate(ctx, "document.body.innerText", &text)
		p.t.Fatalf("%v\nThe page shows:\n%s", err, text)
	}
}

func (p tab) within(do func(ctx context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	p.must(do(ctx))
}

func (p tab) wait(expression string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Wait(ctx, expression) })
}

// sees waits until the main part of the page shows a text.
func (p tab) sees(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.getElementById('main').innerText.includes(%s)", quote(text)))
}

func (p tab) click(selector string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Click(ctx, selector) })
}

func (p tab) fill(selector, text string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Type(ctx, selector, text) })
}

func (p tab) press(key string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Press(ctx, key) })
}

func (p tab) dark(dark bool) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Dark(ctx, dark) })
}

func (p tab) size(width, height int) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Size(ctx, width, height) })
}

// view shows a view by its address.
func (p tab) view(hash string) {
	p.t.Helper()
	p.run("location.hash = " + quote(hash))
}

func (p tab) run(expression string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Evaluate(ctx, expression, nil) })
}

// value evaluates an expression.
func value[T any](p tab, expression string) T {
	p.t.Helper()
	var v T
	p.within(func(ctx context.Context) error { return p.Evaluate(ctx, expression, &v) })
	return v
}

// picture writes a screenshot to the test's artefacts (go test -artifacts keeps them).
func (p tab) picture(name string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.Screenshot(ctx, p.t.ArtifactDir()+"/"+name+".png") })
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
