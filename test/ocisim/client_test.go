// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// client is a raw HTTP client of the API. It is written from the documentation of the protocol and shares no code
// with the SDK, the simulator or pkg/oci.
type client struct {
	t         *testing.T
	transport http.RoundTripper
	base      string
	keyID     string
	key       *rsa.PrivateKey // nil: requests are not signed

	signed []string              // header names to sign; nil: those that OCI requires
	date   func() time.Time      // nil: time.Now
	tamper func(r *http.Request) // after signing
}

// newClient connects to a region without signatures. The key identifier names the caller.
func newClient(t *testing.T, region *ocisim.Region) *client {
	t.Helper()
	return &client{t: t, transport: region.Transport(), base: "https://iaas.us-ashburn-1.oraclecloud.com"}
}

// as returns a client that signs as a principal of the region.
func (c *client) as(region *ocisim.Region, principal string) *client {
	keyID := region.Options().Tenancy + "/" + principal + "/20:3b:97:13"
	region.RegisterKey(keyID, &pki.SigningKey().PublicKey, ocisim.Principal{ID: principal})
	other := *c
	other.keyID, other.key = keyID, pki.SigningKey()
	return &other
}

type response struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
	err    error // of the connection or of reading the body
}

// do sends a request. Headers are pairs of name and value.
func (c *client) do(method, uri string, body any, headers ...string) response {
	c.t.Helper()
	var payload []byte
	switch b := body.(type) {
	case nil:
	case string:
		payload = []byte(b)
	default:
		var err error
		if payload, err = json.Marshal(b); err != nil {
			c.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+uri, bytes.NewReader(payload))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if c.key != nil {
		c.sign(req, payload)
	}
	if c.tamper != nil {
		c.tamper(req)
	}
	return c.send(req)
}

func (c *client) send(req *http.Request) response {
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return response{t: c.t, err: err}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return response{t: c.t, status: res.StatusCode, header: res.Header, body: text, err: err}
}

// sign implements draft-cavage-http-signatures-08 as OCI documents it.
func (c *client) sign(req *http.Request, payload []byte) {
	now := time.Now()
	if c.date != nil {
		now = c.date()
	}
	req.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	names := c.signed
	if names == nil {
		names = []string{"date", "(request-target)", "host"}
		if req.Method == http.MethodPost || req.Method == http.MethodPut {
			names = append(names, "content-length", "content-type", "x-content-sha256")
		}
	}
	hash := sha256.Sum256(payload)
	req.Header.Set("X-Content-Sha256", base64.StdEncoding.EncodeToString(hash[:]))
	lines := make([]string, 0, len(names))
	for _, name := range names {
		var v string
		switch name {
		case "(request-target)":
			v = strings.ToLower(req.Method) + " " + req.URL.RequestURI()
		case "host":
			v = req.URL.Host
		case "content-length":
			v = strconv.Itoa(len(payload))
		default:
			v = req.Header.Get(name)
		}
		lines = append(lines, name+": "+v)
	}
	digest := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, c.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", `Signature version="1",headers="`+strings.Join(names, " ")+`",keyId="`+c.keyID+
		`",algorithm="rsa-sha256",signature="`+base64.StdEncoding.EncodeToString(signature)+`"`)
}

func (c *client) get(uri string, headers ...string) response {
	c.t.Helper()
	return c.do(http.MethodGet, uri, nil, headers...)
}

func (c *client) post(uri string, body any, headers ...string) response {
	c.t.Helper()
	return c.do(http.MethodPost, uri, body, headers...)
}

func (c *client) put(uri string, body any, headers ...string) response {
	c.t.Helper()
	return c.do(http.MethodPut, uri, body, headers...)
}

func (c *client) delete(uri string, headers ...string) response {
	c.t.Helper()
	return c.do(http.MethodDelete, uri, nil, headers...)
}

// want asserts a successful status and returns the response for more.
func (r response) want(status int) response {
	r.t.Helper()
	if r.err != nil {
		r.t.Fatalf("request failed: %v", r.err)
	}
	if r.status != status {
		r.t.Fatalf("status %d, want %d; body %s", r.status, status, r.body)
	}
	return r
}

// wantError asserts a refusal, and the form that all refusals have.
func (r response) wantError(status int, code string) string {
	r.t.Helper()
	r.want(status)
	var body struct{ Code, Message string }
	if err := json.Unmarshal(r.body, &body); err != nil {
		r.t.Fatalf("error body %q: %v", r.body, err)
	}
	if body.Code != code {
		r.t.Fatalf("code %q (%s), want %q", body.Code, body.Message, code)
	}
	if body.Message == "" {
		r.t.Fatal("the error has no message")
	}
	return body.Message
}

// object decodes the body as a JSON object.
func (r response) object() object {
	r.t.Helper()
	o := object{}
	if err := json.Unmarshal(r.body, &o); err != nil {
		r.t.Fatalf("body %q: %v", r.body, err)
	}
	return o
}

// array decodes the body as a JSON array of objects.
func (r response) array() []object {
	r.t.Helper()
	var list []object
	if err := json.Unmarshal(r.body, &list); err != nil {
		r.t.Fatalf("body %q: %v", r.body, err)
	}
	if list == nil {
		r.t.Fatalf("body %q is not a list", r.body)
	}
	return list
}

type object = map[string]any

func str(o object, field string) string {
	s, _ := o[field].(string)
	return s
}

// all reads every page of a list.
func (c *client) all(uri string) []object {
	c.t.Helper()
	return c.rest(uri, "")
}

// rest reads the pages of a list from a page token on.
func (c *client) rest(uri, page string) []object {
	c.t.Helper()
	var list []object
	seen := map[string]bool{}
	for {
		next := uri
		if page != "" {
			next += "&page=" + page
		}
		r := c.get(next).want(http.StatusOK)
		list = append(list, r.array()...)
		values, present := r.header["Opc-Next-Page"]
		if !present {
			return list
		}
		page = values[0]
		if page == "" || seen[page] {
			c.t.Fatalf("page token %q is empty or repeats", page)
		}
		seen[page] = true
	}
}

func ids(list []object) []string {
	out := make([]string, 0, len(list))
	for _, o := range list {
		out = append(out, str(o, "id"))
	}
	return out
}

// fixture is a small world that most tests start from.
type fixture struct {
	*client

	region      *ocisim.Region
	compartment string
	vcn         string
	subnet      string
	instance    string
}

const api = "/20160918"

func newFixture(t *testing.T, options ocisim.Options) *fixture {
	t.Helper()
	region := ocisim.New(options)
	f := &fixture{client: newClient(t, region), region: region}
	f.compartment = region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	f.vcn = region.AddVCN(ocisim.VCN{Name: "net"})
	f.subnet = region.AddSubnet(ocisim.Subnet{Name: "nodes", CIDR: "10.0.10.0/24"})
	f.instance = region.AddInstance(ocisim.Instance{Name: "node-1", VNIC: ocisim.VNIC{Subnet: "nodes"}})
	return f
}

// vnicOf returns the identifier of an instance's first VNIC.
func (f *fixture) vnicOf(instance string) string {
	f.t.Helper()
	attachments := f.get(api + "/vnicAttachments?compartmentId=" + f.compartment + "&instanceId=" + instance).want(http.StatusOK).array()
	if len(attachments) == 0 {
		f.t.Fatalf("instance %s has no VNIC attachment", instance)
	}
	return str(attachments[0], "vnicId")
}
