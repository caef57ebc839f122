// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

// step is something that a user does with volumes; its text is for messages.
type step string

// The steps. Each is about objects whose names are made of that of the kill point.
const (
	createVolume        step = "create a volume"
	cloneVolume         step = "clone it"
	restoreVolume       step = "restore its snapshot"
	attachVolume        step = "attach it"
	expandVolume        step = "expand it"
	modifyVolume        step = "change its performance"
	takeSnapshot        step = "take a snapshot"
	takeGroupSnapshot   step = "take a group snapshot"
	detachVolume        step = "detach it"
	deleteSnapshot      step = "delete the snapshot"
	deleteGroupSnapshot step = "delete the group snapshot"
	deleteClone         step = "delete the copy"
	deleteVolume        step = "delete it"
)

// storageScenario is a step whose every call is a kill point, and the steps before it.
type storageScenario struct {
	name  string
	given []step
	step  step
}

// storageScenarios are those of the issue; those that take longest come first.
func storageScenarios() []storageScenario {
	return []storageScenario{
		{"volume/group-snapshot", []step{createVolume}, takeGroupSnapshot},
		{"volume/create", nil, createVolume},
		{"volume/clone", []step{createVolume}, cloneVolume},
		{"volume/restore", []step{createVolume, takeSnapshot}, restoreVolume},
		{"volume/snapshot", []step{createVolume}, takeSnapshot},
		{"volume/attach", []step{createVolume}, attachVolume},
		{"volume/detach", []step{createVolume, attachVolume}, detachVolume},
		{"volume/expand", []step{createVolume}, expandVolume},
		{"volume/modify", []step{createVolume}, modifyVolume},
		{"volume/snapshot-delete", []step{createVolume, takeSnapshot}, deleteSnapshot},
		{"volume/group-snapshot-delete", []step{createVolume, takeGroupSnapshot}, deleteGroupSnapshot},
		{"volume/delete", []step{createVolume}, deleteVolume},
	}
}
