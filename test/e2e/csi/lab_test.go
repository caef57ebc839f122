// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package csi_test runs the CSI controller as a process beside the real sidecars (provisioner, attacher, resizer, snapshotter,
// snapshot-controller), against a real control plane and the simulated region, with the flags and as the ServiceAccount of the
// manifests. Nodes are simulated: what happens on a node is not the subject here. The names of the cases (C081, …) are those of
// the project's case log.
package csi_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/oracle"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// waitLimit bounds every wait for something that must happen. A machine under load needs a fraction of it.
const waitLimit = 2 * time.Minute

// observe is how long something that must not happen is given to happen.
const observe = 5 * time.Second

// lab is a test bed with a CSI controller and its sidecars.
type lab struct {
	*testbed.Bed

	t       *testing.T
	ctx     context.Context
	storage *testbed.Storage
	// oldRoles says that the roles are those of release v1.35, which lack what is new.
	oldRoles bool
	before   []byte // snapshot of the region that the bed starts with
}

// setting is what a lab is made of. The zero value is the demo world with quick state changes, and the shipped manifests.
type setting struct {
	region  ocisim.Options
	nodes   int // default 3, one in each availability domain
	storage testbed.StorageOptions
	before  func(*lab) // called before the controller starts
}

func newLab(t *testing.T, s setting) *lab {
	t.Helper()
	t.Parallel()
	s.region.Seed = 1
	if s.region.Durations == nil {
		s.region.Durations = testbed.StorageDurations()
	}
	if s.nodes == 0 {
		s.nodes = 3
	}
	world := testbed.WorldOf(s.nodes)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	bed := testbed.New(t, testbed.Options{
		Region: s.region, World: world, Nodes: testbed.StorageNodes(world),
		Cluster: cluster.Options{ControllerManager: true, Scheduler: true},
	})
	l := &lab{Bed: bed, t: t, ctx: ctx, oldRoles: s.storage.Manifests == testbed.OldStorage, before: bed.Region.Snapshot()}
	if s.before != nil {
		s.before(l)
	}
	var err error
	if l.storage, err = bed.StartStorage(ctx, s.storage); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.end)
	// Times of creation have whole seconds: a claim that was made in the second in which the controller was started may be from
	// before, and the controller takes its time before it makes a volume for it.
	time.Sleep(time.Second)
	return l
}

// in is the lab for a subtest.
func (l *lab) in(t *testing.T) *lab {
	other := *l
	other.t, other.ctx = t, t.Context()
	return &other
}

// parallel runs subtests beside each other on the lab, and returns when all are through. They mostly wait, so that the limit of
// parallel tests, which is about labs, is not for them.
func (l *lab) parallel(tests map[string]func(*lab)) {
	l.t.Helper()
	var running sync.WaitGroup
	for name, test := range tests {
		running.Go(func() {
			l.t.Run(name, func(t *testing.T) { test(l.in(t)) })
		})
	}
	running.Wait()
}

// end checks what must hold whatever the test was about: the storage of the region is what the objects of the API justify; the
// oracle has no complaint; no panic.
func (l *lab) end() {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := l.storage.Err(); err != nil {
		l.t.Error(err)
	}
	if !l.t.Failed() {
		if err := testbed.Until(ctx, func(ctx context.Context) (bool, string) {
			left, err := l.Unjustified(ctx)
			if err != nil {
				return false, err.Error()
			}
			return left == "", left
		}); err != nil {
			l.t.Errorf("the region's storage is not what the API's objects justify: %v", err)
		}
	}
	l.storage.Stop()
	refused, err := l.storage.Refused()
	if err != nil {
		l.t.Error(err)
	}
	if len(refused) > 0 && !l.oldRoles {
		l.t.Errorf("the roles of the manifests do not allow what is asked, %d times: %s", len(refused), refused[0])
	}
	q := oracle.Question{Before: l.before, OthersAct: true}
	for _, path := range l.storage.Logs() {
		text := l.read(path)
		q.Logs = append(q.Logs, oracle.Log{Name: path, Text: text})
		if panicked.MatchString(text) {
			l.t.Errorf("panic in %s: %s", path, panicked.FindString(text))
		}
	}
	report, err := l.AskStorage(ctx, q)
	l.must(err)
	if err := report.Err(); err != nil {
		l.t.Error(err)
	}
}

var panicked = regexp.MustCompile(`(?m)^panic: .*|[Pp]anic in .*|Observed a panic.*`)

func (l *lab) read(path string) string {
	l.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func (l *lab) patience() testbed.Patience {
	return testbed.Patience{T: l.t, Ctx: l.ctx, Limit: waitLimit}
}

func (l *lab) until(what string, done func() (bool, string)) {
	l.t.Helper()
	l.patience().Until(what, done)
}

// never checks for a while that something does not happen.
func (l *lab) never(what string, happened func() (bool, string)) {
	l.t.Helper()
	for end := time.Now().Add(observe); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if yes, seen := happened(); yes {
			l.t.Fatalf("%s: %s", what, seen)
		}
	}
}

// must ends the test if something that a test does itself fails.
func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// event waits for an event on an object whose reason is the given one and whose message contains all the texts.
func (l *lab) event(object, reason string, texts ...string) {
	l.t.Helper()
	l.until(fmt.Sprintf("event %s on %s with %q", reason, object, texts), func() (bool, string) {
		list, err := l.Cluster.Client().CoreV1().Events("").List(l.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
		if err != nil {
			return false, err.Error()
		}
		for _, e := range list.Items {
			if e.Reason == reason && !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(e.Message, s) }) {
				return true, ""
			}
		}
		return false, l.Events(l.ctx, v1.NamespaceDefault, object)
	})
}

// calls counts the calls that match, whatever was answered.
func (l *lab) calls(match func(*ocisim.Call) bool) int {
	n := 0
	for _, c := range l.Region.Calls() {
		if match(&c) {
			n++
		}
	}
	return n
}

// attachmentsOf are the attachments of a volume that are not detached.
func (l *lab) attachmentsOf(volume string) []core.VolumeAttachment {
	var list []core.VolumeAttachment
	for _, a := range l.Region.VolumeAttachments() {
		if *a.GetVolumeId() == volume && a.GetLifecycleState() != core.VolumeAttachmentLifecycleStateDetached {
			list = append(list, a)
		}
	}
	return list
}

// nodeDeleted deletes a Node object and what belongs to it; its kubelet is gone.
func (l *lab) nodeDeleted(name string) {
	l.t.Helper()
	l.must(l.Nodes.Halt(name))
	l.must(l.Cluster.Client().CoreV1().Nodes().Delete(l.ctx, name, metav1.DeleteOptions{}))
	l.until("node "+name+" is deleted", func() (bool, string) {
		_, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// attach makes a VolumeAttachment, as the attach-detach controller does it for a pod.
func (l *lab) attach(volume *v1.PersistentVolume, node string) string {
	l.t.Helper()
	name := "csi-" + volume.Name + "-" + node
	_, err := l.Cluster.Client().StorageV1().VolumeAttachments().Create(l.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: testbed.BlockDriver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
		},
	}, metav1.CreateOptions{})
	l.must(err)
	return name
}

// attached waits until a VolumeAttachment is attached.
func (l *lab) attached(name string) *storagev1.VolumeAttachment {
	l.t.Helper()
	var a *storagev1.VolumeAttachment
	l.until(name+" is attached", func() (bool, string) {
		var err error
		if a, err = l.Cluster.Client().StorageV1().VolumeAttachments().Get(l.ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		return a.Status.Attached, fmt.Sprintf("%+v", a.Status)
	})
	return a
}

// detach deletes a VolumeAttachment; detached waits until it is gone, too.
func (l *lab) detach(name string) {
	l.t.Helper()
	l.must(l.Cluster.Client().StorageV1().VolumeAttachments().Delete(l.ctx, name, metav1.DeleteOptions{}))
}

func (l *lab) attachmentGone(name string) bool {
	_, err := l.Cluster.Client().StorageV1().VolumeAttachments().Get(l.ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func (l *lab) detached(name string) {
	l.t.Helper()
	l.detach(name)
	l.until(name+" is gone", func() (bool, string) {
		a, err := l.Cluster.Client().StorageV1().VolumeAttachments().Get(l.ctx, name, metav1.GetOptions{})
		if err != nil {
			return apierrors.IsNotFound(err), err.Error()
		}
		return false, fmt.Sprintf("%+v", a.Status)
	})
}
