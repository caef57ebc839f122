// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const auditEvents = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"1","stage":"ResponseComplete","verb":"get","user":{"username":"alice"},"objectRef":{"resource":"nodes","name":"n1","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"2","stage":"ResponseComplete","verb":"patch","user":{"username":"alice"},"objectRef":{"resource":"services","subresource":"status","namespace":"default","name":"s","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"3","stage":"ResponseComplete","verb":"create","user":{"username":"bob"},"objectRef":{"resource":"leases","namespace":"kube-system","name":"l","apiGroup":"coordination.k8s.io","apiVersion":"v1"}}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"4","stage":"ResponseComplete","verb":"get","user":{"username":"bob"},"requestURI":"/version"}
{"kind":"Event","auditID":"5","verb":"get","us`

func TestAuditSelect(t *testing.T) {
	log := AuditLog{path: filepath.Join(t.TempDir(), "audit.log")}
	if events, err := log.Select(AuditFilter{}); err != nil || len(events) != 0 {
		t.Errorf("without a log: %v, %v", events, err)
	}
	if err := os.WriteFile(log.path, []byte(auditEvents), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter AuditFilter
		want   []string
	}{
		"everything, but no half line": {AuditFilter{}, []string{"1", "2", "3", "4"}},
		"user":                         {AuditFilter{User: "bob"}, []string{"3", "4"}},
		"verb":                         {AuditFilter{Verb: "get"}, []string{"1", "4"}},
		"group":                        {AuditFilter{Group: "coordination.k8s.io"}, []string{"3"}},
		"resource and name":            {AuditFilter{Resource: "nodes", Name: "n1"}, []string{"1"}},
		"subresource and namespace":    {AuditFilter{Subresource: "status", Namespace: "default"}, []string{"2"}},
		"forbidden":                    {AuditFilter{Forbidden: true}, []string{"2"}},
		"nothing":                      {AuditFilter{User: "bob", Forbidden: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := log.Select(test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, event := range events {
				got = append(got, string(event.AuditID))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}

	if err := os.WriteFile(log.path, []byte("no JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Select(AuditFilter{}); err == nil {
		t.Error("a broken line is no error")
	}
}
