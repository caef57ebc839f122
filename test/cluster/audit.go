// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	auditLogFile    = "audit.log"
	auditPolicyFile = "audit-policy.yaml"
	// simulatedKubeletUser makes the requests of the simulated nodes.
	simulatedKubeletUser = "simulated-kubelets"
)

// auditPolicy records who did what, but not the content. The heartbeats of
// simulated nodes would drown everything else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [` + simulatedKubeletUser + `]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: Metadata
`

func writeAuditPolicy(dir string) (string, error) {
	path := filepath.Join(dir, auditPolicyFile)
	return path, os.WriteFile(path, []byte(auditPolicy), 0o644)
}

// AuditLog is the record of the requests that the API server answered, except those
// of simulated nodes and health checks. A watch appears twice, when it starts and
// when it ends (Stage).
type AuditLog struct {
	path string
}

// AuditLog returns the record of requests.
func (c *Cluster) AuditLog() AuditLog { return AuditLog{path: c.path(auditLogFile)} }

// AuditFilter selects requests; an empty field matches everything.
type AuditFilter struct {
	// User is the user's full name, for a service account
	// "system:serviceaccount:NAMESPACE:NAME".
	User string
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Group is the API group; the core group cannot be told from "any".
	Group string
	// Resource is the plural name, Subresource for example "status".
	Resource, Subresource string
	Namespace, Name       string
	// Forbidden selects only requests that authorization refused.
	Forbidden bool
}

// Matches reports whether an event fits the filter.
func (f AuditFilter) Matches(event *auditv1.Event) bool {
	object := event.ObjectRef
	if object == nil {
		object = &auditv1.ObjectReference{}
	}
	for _, pair := range [][2]string{
		{f.User, event.User.Username},
		{f.Verb, event.Verb},
		{f.Group, object.APIGroup},
		{f.Resource, object.Resource},
		{f.Subresource, object.Subresource},
		{f.Namespace, object.Namespace},
		{f.Name, object.Name},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return !f.Forbidden || event.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// Select returns the matching events so far, oldest first.
func (l AuditLog) Select(filter AuditFilter) ([]auditv1.Event, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // no request yet
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var events []auditv1.Event
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil // what follows the last newline is still being written
		}
		if err != nil {
			return nil, err
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if filter.Matches(&event) {
			events = append(events, event)
		}
	}
}

// Wait returns the first matching event, as soon as there is one. The API server
// writes an event when it has answered, so it may follow the answer by a moment.
func (l AuditLog) Wait(ctx context.Context, filter AuditFilter) (auditv1.Event, error) {
	var found auditv1.Event
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		events, err := l.Select(filter)
		if err != nil || len(events) == 0 {
			return false, err
		}
		found = events[0]
		return true, nil
	})
	if err != nil {
		return found, fmt.Errorf("wait for an audit event like %+v: %w", filter, err)
	}
	return found, nil
}
