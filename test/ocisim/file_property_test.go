// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

const fileAPI = "/20171215"

// fileWalk makes random calls of File Storage, and remembers what it saw before.
type fileWalk struct {
	*fixture
	draw   *rapid.T
	states map[string]string // by identifier
}

// TestFileStorageWalk makes random calls in random order and time, and looks after each at what must always hold.
func TestFileStorageWalk(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		behaviour := ocisim.DefaultBehaviour()
		behaviour.ServiceLimits[ocisim.FileSystemLimit] = 4
		w := &fileWalk{
			fixture: newFixture(t, ocisim.Options{Seed: rapid.Uint64().Draw(draw, "seed"), EventualReads: rapid.IntRange(0, 2).Draw(draw, "eventual"), Behaviour: behaviour}),
			draw:    draw, states: map[string]string{},
		}
		w.region.AddFileSystem(ocisim.FileSystem{Name: "seeded"})
		w.region.AddMountTarget(ocisim.MountTarget{Name: "seeded"})
		w.check()
		for range rapid.IntRange(20, 80).Draw(draw, "steps") {
			w.step()
			w.check()
		}
	})
}

// pick draws one of several strings.
func (w *fileWalk) pick(label string, of []string) string {
	return rapid.SampledFrom(of).Draw(w.draw, label)
}

func (w *fileWalk) step() {
	domain := w.pick("domain", []string{firstDomain, firstDomain, firstDomain, secondDomain})
	base := object{"compartmentId": w.compartment, "availabilityDomain": domain}
	switch w.pick("call", []string{"file system", "mount target", "export", "export", "snapshot", "clone", "clone", "update", "delete", "delete", "wait", "wait"}) {
	case "file system":
		w.send(http.MethodPost, "/fileSystems", base)
	case "mount target":
		base["subnetId"] = w.subnet
		w.send(http.MethodPost, "/mountTargets", base)
	case "export":
		w.send(http.MethodPost, "/exports", object{
			"exportSetId": w.known("exportset"), "fileSystemId": w.known("filesystem"), "path": w.pick("path", []string{"/", "/a", "/a/b", "/b"}),
		})
	case "snapshot":
		w.send(http.MethodPost, "/snapshots", object{"fileSystemId": w.known("filesystem"), "name": w.pick("name", []string{"x", "y"})})
	case "clone":
		base["sourceSnapshotId"] = w.known("snapshot")
		w.send(http.MethodPost, "/fileSystems", base)
	case "update":
		w.send(http.MethodPut, "/fileSystems/"+w.known("filesystem"), object{"displayName": "renamed"})
	case "delete":
		kind := w.pick("kind", []string{"fileSystems", "fileSystems", "mountTargets", "exports", "snapshots"})
		query := w.pick("detach", []string{"", "?canDetachChildFileSystem=true"})
		w.send(http.MethodDelete, "/"+kind+"/"+w.known(strings.ToLower(strings.TrimSuffix(kind, "s")))+query, nil)
	case "wait":
		w.region.Advance(time.Duration(rapid.IntRange(1, 90).Draw(w.draw, "seconds")) * time.Second)
	}
}

// known picks an identifier of a type that the region has or had.
func (w *fileWalk) known(ocidType string) string {
	ids := []string{"ocid1." + ocidType + ".oc1.iad.unknown"}
	for id := range w.states {
		if strings.HasPrefix(id, "ocid1."+ocidType+".") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return w.pick(ocidType, ids)
}

// send makes a call. It may be refused, but not with a fault of the service.
func (w *fileWalk) send(method, path string, body object) {
	r := w.do(method, fileAPI+path, body)
	if r.status == 0 || r.status >= http.StatusInternalServerError {
		w.draw.Fatalf("%s %s %v: %d %s %v", method, path, body, r.status, r.body, r.err)
	}
}

// fileSteps are the ways from one state into the next.
var fileSteps = map[string][]string{
	"":         {"CREATING"},
	"CREATING": {"ACTIVE"},
	"ACTIVE":   {"UPDATING", "DELETING"},
	"UPDATING": {"ACTIVE"},
	"DELETING": {"DELETED"},
}

// reachable says whether a state can follow another one, however many lie between them.
func reachable(from, to string) bool {
	seen := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			return true
		}
		if !seen[queue[0]] {
			seen[queue[0]] = true
			queue = append(queue, fileSteps[queue[0]]...)
		}
	}
	return false
}

func (w *fileWalk) saw(id, state string) {
	if before := w.states[id]; !reachable(before, state) {
		w.draw.Fatalf("%s went from %q to %q", id, before, state)
	}
	w.states[id] = state
}

func (w *fileWalk) check() {
	w.checkFileSystems()
	w.checkMountTargets()
	w.checkExports()
	for _, s := range w.region.FileSnapshots() {
		if w.states[*s.Id] == "CREATING" && s.LifecycleState == filestorage.SnapshotLifecycleStateDeleting {
			w.states[*s.Id] = "ACTIVE" // its file system is being deleted
		}
		w.saw(*s.Id, string(s.LifecycleState))
	}
}

func (w *fileWalk) checkFileSystems() {
	creating, perDomain, clones := 0, map[string]int{}, map[string]int{}
	list := w.region.FileSystems()
	for _, v := range list {
		w.saw(*v.Id, string(v.LifecycleState))
		if v.LifecycleState == filestorage.FileSystemLifecycleStateCreating {
			creating++
		}
		if v.LifecycleState == filestorage.FileSystemLifecycleStateDeleted {
			continue
		}
		perDomain[*v.AvailabilityDomain]++
		if v.SourceDetails != nil && v.CloneAttachStatus != filestorage.FileSystemCloneAttachStatusDetached {
			clones[*v.SourceDetails.ParentFileSystemId]++
		}
	}
	if creating > 1 {
		w.draw.Fatalf("%d file systems are being created", creating)
	}
	for domain, n := range perDomain {
		if n > 4 {
			w.draw.Fatalf("%d file systems in %s", n, domain)
		}
	}
	for _, v := range list {
		if n := clones[*v.Id]; *v.CloneCount != n || *v.IsCloneParent != (n > 0) {
			w.draw.Fatalf("file system %s says it has %d clones, but has %d", *v.Id, *v.CloneCount, n)
		}
		if v.LifecycleState == filestorage.FileSystemLifecycleStateDeleted && clones[*v.Id] > 0 {
			w.draw.Fatalf("file system %s is deleted, and has clones", *v.Id)
		}
	}
}

func (w *fileWalk) checkMountTargets() {
	creating, living := 0, 0
	sets := map[string]filestorage.ExportSetLifecycleStateEnum{}
	for _, s := range w.region.ExportSets() {
		w.saw(*s.Id, string(s.LifecycleState))
		sets[*s.Id] = s.LifecycleState
	}
	for _, v := range w.region.MountTargets() {
		w.saw(*v.Id, string(v.LifecycleState))
		if v.LifecycleState != filestorage.MountTargetLifecycleStateDeleted {
			living++
		}
		switch v.LifecycleState {
		case filestorage.MountTargetLifecycleStateCreating:
			creating++
		case filestorage.MountTargetLifecycleStateActive:
			if sets[*v.ExportSetId] != filestorage.ExportSetLifecycleStateActive || len(v.PrivateIpIds) != 1 {
				w.draw.Fatalf("mount target %v with the export set %s", v, sets[*v.ExportSetId])
			}
		}
	}
	if creating > 1 {
		w.draw.Fatalf("%d mount targets are being created", creating)
	}
	addresses, leaving := 0, 0
	for _, v := range w.region.VNICs() {
		if !strings.HasPrefix(*v.DisplayName, "VNIC of ocid1.mounttarget.") {
			continue
		}
		if v.LifecycleState == core.VnicLifecycleStateTerminating {
			leaving++
		}
		for _, ip := range w.region.PrivateIPs() {
			if *ip.VnicId == *v.Id {
				addresses++
			}
		}
	}
	if addresses != 3*(living+leaving) {
		w.draw.Fatalf("%d addresses for %d mount targets and %d VNICs of former ones", addresses, living, leaving)
	}
}

func (w *fileWalk) checkExports() {
	paths, systems, domains := map[string][]string{}, map[string]bool{}, map[string]string{}
	for _, s := range w.region.ExportSets() {
		domains[*s.Id] = *s.AvailabilityDomain
	}
	for _, e := range w.region.Exports() {
		w.saw(*e.Id, string(e.LifecycleState))
		if e.LifecycleState == filestorage.ExportLifecycleStateDeleted {
			continue
		}
		fs, ok := w.region.FileSystem(*e.FileSystemId)
		if !ok || fs.LifecycleState == filestorage.FileSystemLifecycleStateDeleting || fs.LifecycleState == filestorage.FileSystemLifecycleStateDeleted {
			w.draw.Fatalf("export %v of the file system %v", e, fs)
		}
		if *fs.AvailabilityDomain != domains[*e.ExportSetId] {
			w.draw.Fatalf("export of file system %v in domain %s", fs, domains[*e.ExportSetId])
		}
		if systems[*e.ExportSetId+*e.FileSystemId] {
			w.draw.Fatalf("file system %s is exported twice", *e.FileSystemId)
		}
		systems[*e.ExportSetId+*e.FileSystemId] = true
		for _, other := range paths[*e.ExportSetId] {
			a, b := strings.TrimSuffix(other, "/")+"/", strings.TrimSuffix(*e.Path, "/")+"/"
			if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
				w.draw.Fatalf("paths %s and %s in one export set", other, *e.Path)
			}
		}
		paths[*e.ExportSetId] = append(paths[*e.ExportSetId], *e.Path)
	}
}
