// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"bytes"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
)

const (
	me        = "ocid1.user.oc1..ccm"
	terraform = "ocid1.user.oc1..terraform"
	cluster   = "cluster-1"
	owner     = "6c4e8cf6-6a4b-4f0d-9e5c-0a3d5f1b7e11" // a living Service
	deadOwner = "11111111-6a4b-4f0d-9e5c-0a3d5f1b7e11"
)

type object = map[string]any

// lab is a region with something of everybody in it: nodes, a security group and a reserved address of somebody else,
// and a balancer of ours on that address, whose owner lives.
type lab struct {
	t      *testing.T
	region *ocisim.Region

	compartment, subnet, vcn string
	group, address, instance string
	balancer                 string
	before                   []byte // taken before the balancer
}

func newLab(t *testing.T) *lab {
	t.Helper()
	region := ocisim.New(ocisim.Options{Seed: 1})
	l := &lab{t: t, region: region}
	for _, who := range []string{me, terraform} {
		region.RegisterKey(who, &rsa.PublicKey{}, ocisim.Principal{ID: who}) // believed, not verified
	}
	l.compartment = region.AddCompartment(ocisim.Compartment{Name: "cluster"})
	l.vcn = region.AddVCN(ocisim.VCN{Name: "net"})
	l.subnet = region.AddSubnet(ocisim.Subnet{Name: "public", CIDR: "10.0.0.0/24"})
	l.group = region.AddSecurityGroup(ocisim.SecurityGroup{
		Name: "theirs", Ingress: []ocisim.SecurityRule{{Protocol: "tcp", Ports: "22", Description: "ssh"}},
	})
	l.address = region.AddPublicIP(ocisim.PublicIP{Name: "reserved"})
	l.instance = region.AddInstance(ocisim.Instance{Name: "node-1", VNIC: ocisim.VNIC{Subnet: "public"}})
	l.before = region.Snapshot()
	l.balancer = l.newLB(owner, object{"reservedIps": []object{{"id": l.address}}})
	return l
}

// call sends a request as somebody and returns the answer's body.
func (l *lab) call(who, method, uri string, body any) []byte {
	l.t.Helper()
	status, text := l.try(who, method, uri, body)
	if status >= 300 {
		l.t.Fatalf("%s %s: %d %s", method, uri, status, text)
	}
	return text
}

func (l *lab) try(who, method, uri string, body any) (int, []byte) {
	l.t.Helper()
	payload, err := json.Marshal(body)
	if err != nil {
		l.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(l.t.Context(), method, "https://iaas.us-ashburn-1.oraclecloud.com"+uri, bytes.NewReader(payload))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", `Signature version="1",headers="date",keyId="`+who+`",algorithm="rsa-sha256",signature="AAAA"`)
	res, err := l.region.Transport().RoundTrip(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return res.StatusCode, text
}

// marks are the tags of an object of ours.
func marks(owner string) object { return object{oracle.TagCluster: cluster, oracle.TagOwner: owner} }

const balancers = "/20170115/loadBalancers"

// startLB asks for a load balancer of ours. No owner means no marks.
func (l *lab) startLB(owner string, change object) string {
	l.t.Helper()
	body := object{
		"compartmentId": l.compartment, "displayName": "web", "shapeName": "flexible", "subnetIds": []string{l.subnet},
		"shapeDetails": object{"minimumBandwidthInMbps": 10, "maximumBandwidthInMbps": 10},
	}
	if owner != "" {
		body["freeformTags"] = marks(owner)
	}
	for field, v := range change {
		body[field] = v
	}
	l.call(me, http.MethodPost, balancers, body)
	calls := l.region.Calls()
	return calls[len(calls)-1].Created
}

func (l *lab) newLB(owner string, change object) string {
	l.t.Helper()
	id := l.startLB(owner, change)
	l.region.Advance(2 * time.Minute)
	return id
}

func (l *lab) newNLB(owner string) string {
	l.t.Helper()
	text := l.call(me, http.MethodPost, "/20200501/networkLoadBalancers", object{
		"compartmentId": l.compartment, "displayName": "web", "subnetId": l.subnet, "freeformTags": marks(owner),
	})
	l.region.Advance(2 * time.Minute)
	var made struct{ ID string }
	if err := json.Unmarshal(text, &made); err != nil {
		l.t.Fatal(err)
	}
	return made.ID
}

// question is what most tests ask; they change it.
func (l *lab) question() oracle.Question {
	return oracle.Question{
		Before: l.before,
		Us:     oracle.Us{Principals: []string{me}, Cluster: cluster, Owners: []string{owner}},
	}
}

func (l *lab) ask(change func(*oracle.Question)) *oracle.Report {
	l.t.Helper()
	q := l.question()
	if change != nil {
		change(&q)
	}
	report, err := oracle.Check(l.t.Context(), oracle.InProcess(l.region), q)
	if err != nil {
		l.t.Fatal(err)
	}
	return report
}

// clean asks and wants no finding.
func (l *lab) clean(change func(*oracle.Question)) {
	l.t.Helper()
	if err := l.ask(change).Err(); err != nil {
		l.t.Errorf("nothing is wrong, and yet:\n%v", err)
	}
}

// finds asks and wants exactly one finding, of this kind, about this resource, whose text has all the words.
func (l *lab) finds(change func(*oracle.Question), kind oracle.Kind, resource string, words ...string) oracle.Finding {
	l.t.Helper()
	report := l.ask(change)
	if len(report.Findings) != 1 {
		l.t.Fatalf("want one finding, got:\n%s", report)
	}
	f := report.Findings[0]
	if f.Kind != kind || f.Resource != resource {
		l.t.Errorf("want %s of %s, got:\n%s", kind, resource, report)
	}
	for _, word := range words {
		if !strings.Contains(report.String(), word) {
			l.t.Errorf("%q is not in the report:\n%s", word, report)
		}
	}
	return f
}

func (l *lab) lastCall() ocisim.Call {
	calls := l.region.Calls()
	return calls[len(calls)-1]
}

// madeBy checks which operations a finding names.
func madeBy(t *testing.T, f oracle.Finding, operations ...string) {
	t.Helper()
	var got []string
	for _, c := range f.Calls {
		got = append(got, c.Operation)
		if c.RequestID == "" {
			t.Errorf("call %d has no request id", c.Seq)
		}
	}
	if !slices.Equal(got, operations) {
		t.Errorf("calls %v, want %v", got, operations)
	}
}

func TestCleanScenario(t *testing.T) {
	l := newLab(t)
	l.clean(nil)
	report := l.ask(func(q *oracle.Question) {
		q.Settled = true
		q.Us.Writes = []string{ocisim.ServiceLoadBalancer}
		q.Budgets = []oracle.Budget{{Operation: "CreateLoadBalancer", Most: 1}}
		q.Quiet = []oracle.Window{{From: l.lastCall().Seq}}
		q.Logs = []oracle.Log{{Name: "ccm.log", Text: "all is well"}}
		q.Secrets = []oracle.Secret{{Name: "password", Value: "correct horse battery staple"}}
	})
	if err := report.Err(); err != nil {
		t.Errorf("%v", err)
	}
	// The balancer, its VNIC and its private address.
	if report.Ours != 3 || report.OurCalls != 1 {
		t.Errorf("it saw %d objects and %d calls of ours", report.Ours, report.OurCalls)
	}
	if !strings.HasPrefix(report.String(), "oracle: nothing to report") {
		t.Errorf("report %s", report)
	}
}
