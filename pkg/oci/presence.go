// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Presence is what is known about the existence of a cloud resource.
type Presence int

const (
	// Unknown means that nothing was proven. It must be treated as an error, never as an absence.
	Unknown Presence = iota
	// Present means that the resource exists, in whatever state that is not its end.
	Present
	// Gone means that its absence is proven. Only then may something be deleted, or made a second time.
	Gone
)

func (p Presence) String() string {
	switch p {
	case Present:
		return "Present"
	case Gone:
		return "Gone"
	default:
		return "Unknown"
	}
}

// Proof says in words what a Presence rests on, for logs and events.
type Proof string

// PresenceError says why a Presence is Unknown. It is not ErrNotFound, even where the services answered 404: who looks for
// an absence finds it in Presence only.
type PresenceError struct {
	Read error // of the resource
	List error // of the compartment; nil if it was not listed
}

func (e *PresenceError) Error() string {
	switch {
	case e.List != nil:
		return fmt.Sprintf("neither presence nor absence can be proven: %v; and the compartment cannot be listed: %v", e.Read, e.List)
	default:
		return fmt.Sprintf("neither presence nor absence can be proven: %v", e.Read)
	}
}

// Unwrap returns the errors except for 404s.
func (e *PresenceError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Read, e.List}, func(err error) bool {
		return err == nil || errors.Is(err, ErrNotFound)
	})
}

// errNoCompartment is the List error where nobody knows which compartment the resource is in.
var errNoCompartment = errors.New("its compartment is not known")

// Evidence is how the presence of one resource can be found out.
type Evidence struct {
	// Read returns the state of the resource.
	Read func(context.Context) (state string, err error)
	// Terminal are the states in which the resource is gone, though it can still be read.
	Terminal []string
	// Compartment is the OCID of the compartment that List lists. If it is empty, a 404 proves nothing.
	Compartment string
	// List looks for the resource in a complete list. It is asked only after Read answered 404.
	List func(context.Context) (state string, found bool, err error)
}

// Decide is the one place where an absence is established, for every kind of resource: OCI answers 404 both for what is
// gone and for what this principal may not see, so a 404 counts only together with a complete list, which this principal
// was able to read, and in which the resource is missing.
//
// The error is nil unless the Presence is Unknown.
func Decide(ctx context.Context, e Evidence) (Presence, Proof, error) {
	state, readErr := e.Read(ctx)
	if readErr == nil {
		return e.judge(state, "")
	}
	if !errors.Is(readErr, ErrNotFound) {
		return Unknown, "", &PresenceError{Read: readErr}
	}
	if e.Compartment == "" {
		return Unknown, "", &PresenceError{Read: readErr, List: errNoCompartment}
	}
	state, found, listErr := e.List(ctx)
	switch {
	case listErr != nil:
		return Unknown, "", &PresenceError{Read: readErr, List: listErr}
	case found:
		return e.judge(state, "404, but in the list of compartment "+e.Compartment+": ")
	}
	return Gone, Proof("404 and absent from a complete list of compartment " + e.Compartment), nil
}

func (e Evidence) judge(state, how string) (Presence, Proof, error) {
	presence := Present
	if slices.Contains(e.Terminal, state) {
		presence = Gone
	}
	return presence, Proof(how + "state " + state), nil
}

// InstancePresence finds out whether an instance exists. A TERMINATING one is Present: it may still run, and answers for
// its volumes and addresses until it is TERMINATED. An empty compartmentID makes a 404 Unknown.
func (c *Client) InstancePresence(ctx context.Context, id, compartmentID string) (Presence, Proof, error) {
	_, presence, proof, err := c.LookForInstance(ctx, id, compartmentID)
	return presence, proof, err
}

// LookForInstance is InstancePresence for callers that want the instance too. It is nil unless it was read or listed.
func (c *Client) LookForInstance(ctx context.Context, id, compartmentID string) (*Instance, Presence, Proof, error) {
	var instance *Instance
	presence, proof, err := Decide(ctx, Evidence{
		Read: func(ctx context.Context) (string, error) {
			i, err := c.Compute().GetInstance(ctx, id)
			if err != nil {
				return "", err
			}
			instance = i
			return i.State, nil
		},
		Terminal:    []string{"TERMINATED"},
		Compartment: compartmentID,
		List: func(ctx context.Context) (string, bool, error) {
			all, err := c.Compute().ListInstances(ctx, compartmentID, "")
			if err != nil {
				return "", false, err
			}
			for _, i := range all {
				if i.ID == id {
					instance = i
					return i.State, true, nil
				}
			}
			return "", false, nil
		},
	})
	return instance, presence, proof, err
}
