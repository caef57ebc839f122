// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/bodies"
	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

const (
	// waitLimit bounds every wait for something that must happen. A machine under load needs a fraction of it.
	waitLimit = 4 * time.Minute
	// machines is how many nodes there are.
	machines = 2
)

// lab is a region whose volumes are disks, and a cluster with nodes that run pods.
type lab struct {
	*testbed.Bed

	t            *testing.T
	ctx          context.Context
	http         *http.Client
	nodePrograms string   // directory of the kubelet
	runtime      string   // directory of containerd and what it needs
	archives     []string // of images
	machines     []*machine
}

// newLab starts everything but the storage drivers.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := newNodes(t)
	l.runCCM()
	return l
}

// newNodes starts the region, the control plane, and nodes that no cloud-controller-manager has seen yet.
func newNodes(t *testing.T) *lab {
	t.Helper()
	if os.Getenv(insideVariable) == "" {
		t.Skip("needs root: namespaces, mounts, control groups and loop devices")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	l := &lab{t: t, ctx: ctx, http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	var err error
	if l.nodePrograms, err = cluster.BuildNode(ctx, "", os.Stderr); err != nil {
		t.Fatal(err)
	}
	if l.runtime, err = cluster.BuildRuntime(ctx, "", os.Stderr); err != nil {
		t.Fatal(err)
	}
	l.archives = l.makeImages()
	newNetwork(t)
	l.startRegion()
	forward(t, l.Cluster.URL()[len("https://"):])
	for i := range machines {
		m := l.newMachine(i)
		l.machines = append(l.machines, m)
		l.powerOn(m)
	}
	t.Cleanup(func() {
		for _, m := range l.machines {
			if t.Failed() {
				l.lastWords(m)
			}
			if m.init != nil {
				l.powerOff(m)
			}
		}
	})
	for _, m := range l.machines {
		l.connect(m)
	}
	l.until("nodes are ready", func() (bool, string) {
		for _, m := range l.machines {
			if ok, why := l.ready(m); !ok {
				return false, m.name + ": " + why
			}
		}
		return true, ""
	})
	return l
}

// startRegion starts the region, with disks, and the control plane.
func (l *lab) startRegion() {
	l.t.Helper()
	body, err := bodies.NewLoop(bodies.LoopOptions{Root: filepath.Join(workDir(), "nodes"), Dir: filepath.Join(workDir(), "volumes")})
	if err != nil {
		l.t.Fatal(err)
	}
	world := testbed.WorldOf(machines)
	for i := range world.Instances { // volumes move only within an availability domain
		world.Instances[i].AvailabilityDomain = "Uocm:US-ASHBURN-AD-1"
	}
	durations := testbed.StorageDurations()
	durations["instance.*"] = ocisim.Range{Min: 200 * time.Millisecond, Max: 600 * time.Millisecond}
	l.Bed = testbed.New(l.t, testbed.Options{
		World:  world,
		Region: ocisim.Options{Seed: 1, Durations: durations, Attachments: body},
		Nodes:  noSimulatedNodes(),
		Cluster: cluster.Options{
			ControllerManager: true, Scheduler: true, TempDir: scratch,
			NodeMonitorGracePeriod: 20 * time.Second, // heartbeats come each 4 s, later on a busy machine
		},
	})
	// Without an initiator, volumes come as paravirtualized disks: on instances with encryption in transit they do so by themselves.
	for i := range machines {
		err := l.Region.Foreign().Instance(testbed.InstanceID(i), func(in *core.Instance) {
			in.LaunchOptions.IsPvEncryptionInTransitEnabled = common.Bool(true)
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	l.t.Cleanup(func() {
		if err := l.Region.Close(); err != nil {
			l.t.Errorf("close the region: %v", err)
		}
	})
}

// machineDir is the directory of the i-th node. The region's disks appear in its dev.
func (l *lab) machineDir(i int) string {
	return filepath.Join(workDir(), "nodes", testbed.InstanceID(i))
}

// makeImages builds what pods run, and makes images of it.
func (l *lab) makeImages() []string {
	l.t.Helper()
	dir := filepath.Join(workDir(), "images")
	program := filepath.Join(dir, "workload")
	if out, err := exec.Command("go", "build", "-o", program, "./workload").CombinedOutput(); err != nil {
		l.t.Fatalf("build the workload: %v\n%s", err, out)
	}
	images := []image{
		{name: pauseImage, files: map[string]string{"/workload": program}, entrypoint: []string{"/workload", "pause"}},
		{name: workloadImage, files: map[string]string{"/workload": program}, entrypoint: []string{"/workload"}},
	}
	archives, err := writeImages(dir, append(images, l.driverImages()...))
	if err != nil {
		l.t.Fatal(err)
	}
	return archives
}

// runCCM starts the cloud-controller-manager and waits until it knows the nodes.
func (l *lab) runCCM() {
	l.t.Helper()
	ccm, err := l.StartCCM(l.ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		select {
		case <-ccm.Done():
			if !ccm.Asked() {
				l.t.Errorf("the cloud-controller-manager ended by itself: %v", ccm.Err())
			}
		default:
		}
	})
	l.patience().Eventually("nodes initialised", l.NodesInitialized)
}

// ready says whether the Node of a machine is ready.
func (l *lab) ready(m *machine) (bool, string) {
	node, err := l.Cluster.Client().CoreV1().Nodes().Get(l.ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return false, err.Error()
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue, c.Message
		}
	}
	return false, "no condition"
}

// lastWords prints the ends of a machine's logs.
func (l *lab) lastWords(m *machine) {
	for _, p := range []interface {
		Name() string
		LogTail(int) string
	}{m.containerd, m.kubelet} {
		l.t.Logf("%s:\n%s", p.Name(), p.LogTail(60))
	}
	logs, _ := filepath.Glob(filepath.Join(m.dir, "fs/var/log/pods/*/*/*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		l.t.Logf("%s:\n%s", path, text[max(0, len(text)-6000):])
	}
}

func (l *lab) patience() testbed.Patience {
	return testbed.Patience{T: l.t, Ctx: l.ctx, Limit: waitLimit}
}

// until waits for something that must happen.
func (l *lab) until(what string, done func() (bool, string)) {
	l.t.Helper()
	l.patience().Until(what, done)
}

// tool is the path of a program of the system.
func (l *lab) tool(name string) string {
	l.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return path
}

// query makes the query of a request to a workload.
func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return "?" + v.Encode()
}
