// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"os"
	"time"
)

// Options say where the host is and what is kept where.
type Options struct {
	Paths Paths
	// StateDir is a directory of this process that outlives it, for records of connected volumes.
	StateDir string
	// AgentWait is how long the cloud's agent on the node is given to log in to the targets of a multipath attachment, before this
	// process does it. Default 1 minute.
	AgentWait time.Duration
}

// defaultAgentWait: the agent looks for new attachments every few tens of seconds.
const defaultAgentWait = time.Minute

// Host is the machine that volumes are attached to. It is safe for concurrent use.
type Host struct {
	paths     Paths
	state     string
	agentWait time.Duration
	locks     locks
}

// New returns a Host. The caller makes one for the whole process: operations of a volume exclude each other within one Host only.
func New(o Options) (*Host, error) {
	if o.StateDir == "" {
		return nil, fmt.Errorf("%w: no directory for records", ErrInvalid)
	}
	if o.Paths.MountNamespace != "" {
		if _, err := os.Stat(o.Paths.MountNamespace); err != nil {
			return nil, fmt.Errorf("the host's mount namespace: %w (the container must be privileged, and have the host's root directory)", err)
		}
	}
	if o.AgentWait == 0 {
		o.AgentWait = defaultAgentWait
	}
	return &Host{paths: o.Paths, state: o.StateDir, agentWait: o.AgentWait, locks: locks{held: map[string]*activity{}}}, nil
}
