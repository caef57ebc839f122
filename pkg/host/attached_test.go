// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"slices"
	"testing"
)

// TestAttached: C094. Each volume counts once, however many paths and links it has; the boot volume and partitions do not count.
func TestAttached(t *testing.T) {
	l := newLab(t)
	loops := []disk{l.disk(1), l.disk(1), l.disk(1), l.disk(1), l.disk(1)}
	boot := Target{IQN: bootIQN + "uefi", Portal: portal(0)}
	one := Target{IQN: testIQN, Portal: portal(2)}
	two := []Target{{IQN: testIQN + "4", Portal: portal(3)}, {IQN: testIQN + "4", Portal: portal(4)}}
	l.target(boot, loops[0])
	l.target(one, loops[1])
	l.target(two[0], loops[2])
	l.target(two[1], loops[3])
	l.target(Target{IQN: testIQN + "5", Portal: portal(5)}) // a session that has lost its disk
	for _, t := range []string{"session1", "session2", "session3", "session4", "session5"} {
		l.link("../../devices/platform/host2/"+t+"/iscsi_session/"+t, "sys/class/iscsi_session/"+t)
	}
	l.link("../"+loops[0].name, "dev/oracleoci/oraclevda")
	l.link("../"+loops[1].name, "dev/oracleoci/oraclevdb")
	l.link("../"+loops[4].name, "dev/oracleoci/oraclevdc")
	l.link("../gone", "dev/oracleoci/oraclevdd")
	got, err := l.Attached()
	l.must(err)
	want := []Attached{
		{IQN: testIQN, Device: "/dev/oracleoci/oraclevdb"},
		{IQN: testIQN + "4"},
		{Device: "/dev/oracleoci/oraclevdc"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("attached: %+v, want %+v", got, want)
	}
}
