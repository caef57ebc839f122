// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/oracle/oci-cloud-controller-manager/test/cluster"
	"github.com/oracle/oci-cloud-controller-manager/test/cluster/process"
)

// Manifests of the CSI drivers, relative to the root of the repository: ours, and those of release v1.35.
const (
	ShippedStorage = "manifests/container-storage-interface"
	OldStorage     = "test/fixtures/v1.35/csi-*.yaml"
)

// BlockDriver is the name of the CSI driver for block volumes.
const BlockDriver = "blockvolume.csi.oraclecloud.com"

// StorageOptions say how the CSI controller and its sidecars run. The zero value is as the shipped manifests do.
type StorageOptions struct {
	Manifests string // a directory or a pattern, relative to the root of the repository; default ShippedStorage
	// Flags are appended to those of the manifests, by program ("csi-provisioner"); they win.
	Flags map[string][]string
	Env   []string // of our controller, over that of the manifests
	// ConfigChange is appended to the config of the bed.
	ConfigChange string
}

// Storage is a CSI controller with its sidecars: processes with the flags and the ServiceAccount of the manifests.
type Storage struct {
	Driver  string
	Account string // the ServiceAccount, in kube-system

	bed        *Bed
	options    StorageOptions
	config     string // path
	kubeconfig string
	controller program
	sidecars   []*sidecar
	started    int // controllers so far

	process *process.Process // the controller that runs, or ran last
}

// quickRetries bound how long a test waits for the next try of a sidecar; by default that grows to minutes.
var quickRetries = []string{"--retry-interval-start=500ms", "--retry-interval-max=4s"}

// StartStorage applies the manifests, lets the driver be on all nodes, and starts the controller and its sidecars.
func (b *Bed) StartStorage(ctx context.Context, o StorageOptions) (*Storage, error) {
	if o.Manifests == "" {
		o.Manifests = ShippedStorage
	}
	s := &Storage{Driver: BlockDriver, bed: b, options: o, config: filepath.Join(b.Cluster.Dir(), "storage.yaml")}
	if err := os.WriteFile(s.config, []byte(b.config()+o.ConfigChange), 0o600); err != nil {
		return nil, err
	}
	if err := b.Cluster.ApplySnapshotCRDs(ctx); err != nil {
		return nil, err
	}
	w, err := s.apply(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.DriverOnNodes(ctx, s.Driver); err != nil {
		return nil, err
	}
	s.Account = w.account
	if s.kubeconfig, err = b.Cluster.ServiceAccountKubeconfig(ctx, namespace, w.account); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(w.programs, func(p program) bool { return p.name == storageController })
	s.controller = w.programs[i]
	if err := s.StartController(ctx); err != nil {
		return nil, err
	}
	return s, s.startSidecars(ctx, slices.Delete(w.programs, i, i+1))
}

// apply applies what the manifests define but for what a kubelet would run, and returns that.
func (s *Storage) apply(ctx context.Context) (workload, error) {
	root, err := repositoryRoot()
	if err != nil {
		return workload{}, err
	}
	paths, err := filepath.Glob(filepath.Join(root, s.options.Manifests))
	if err != nil {
		return workload{}, err
	}
	if len(paths) == 0 {
		return workload{}, fmt.Errorf("no manifests %s", s.options.Manifests)
	}
	objects, err := cluster.LoadManifests(paths...)
	if err != nil {
		return workload{}, err
	}
	deployment, err := findWorkload(objects)
	if err != nil {
		return workload{}, err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Deployment", "DaemonSet", "Secret"}, o.GetKind())
	})
	// Kinds before what is of them, wherever they stand.
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return rank(a) - rank(b)
	})
	if err := s.bed.Cluster.ApplyObjects(ctx, objects...); err != nil {
		return workload{}, err
	}
	return processes(deployment, s.bed.Cluster.Dir())
}

func rank(o *unstructured.Unstructured) int {
	if o.GetKind() == "CustomResourceDefinition" {
		return 0
	}
	return 1
}

// StartController starts the controller, for the first time or after it was killed.
func (s *Storage) StartController(ctx context.Context, flags ...string) error {
	bin, err := binary(ctx, s.bed.options.BinDir, s.controller.name)
	if err != nil {
		return err
	}
	s.started++
	args := slices.Concat(s.controller.args, []string{"--kubeconfig=" + s.kubeconfig}, s.options.Flags[s.controller.name], flags)
	env := slices.Concat(s.bed.Env(), s.controller.env, []string{"CONFIG_YAML_FILENAME=" + s.config}, s.options.Env)
	// The working directory is that of a container: the manifests of v1.35 name sockets relative to it.
	s.process, err = s.bed.Cluster.StartProcess(process.Spec{
		Name: fmt.Sprintf("csi-controller-%d", s.started), Path: bin, Args: args, Env: env, Dir: "/",
	})
	return err
}

// Controller is the controller that runs, or ran last.
func (s *Storage) Controller() *process.Process { return s.process }

// Kill ends the controller with SIGKILL.
func (s *Storage) Kill() { s.process.Kill() }

// Logs are the paths of the logs of all controllers so far.
func (s *Storage) Logs() []string {
	var paths []string
	for i := range s.started {
		paths = append(paths, filepath.Join(s.bed.Cluster.Dir(), "logs", fmt.Sprintf("csi-controller-%d.log", i+1)))
	}
	return paths
}

// Refused returns the lines of the logs of controller and sidecars that tell of something that their roles do not allow.
func (s *Storage) Refused() ([]string, error) {
	paths := s.Logs()
	for _, c := range s.sidecars {
		paths = append(paths, filepath.Join(s.bed.Cluster.Dir(), "logs", c.name+".log"))
	}
	var lines []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "is forbidden: User") {
				lines = append(lines, filepath.Base(path)+": "+strings.TrimSpace(line))
			}
		}
	}
	return lines, nil
}

// Err tells whether the controller has ended although nobody asked it to.
func (s *Storage) Err() error {
	select {
	case <-s.process.Done():
		if !s.process.Asked() {
			return fmt.Errorf("the CSI controller ended by itself: %w\n%s", s.process.Err(), s.process.LogTail(20))
		}
	default:
	}
	return nil
}

// Stop ends the controller and the sidecars.
func (s *Storage) Stop() {
	for _, c := range s.sidecars {
		c.end()
	}
	for _, c := range s.sidecars {
		<-c.ended
	}
	if s.process != nil {
		s.process.Kill()
	}
}

func (s *Storage) startSidecars(ctx context.Context, programs []program) error {
	dir, err := cluster.BuildSidecars(ctx, "", s.bed.options.Cluster.Progress)
	if err != nil {
		return err
	}
	for _, p := range programs {
		path := filepath.Join(dir, p.name)
		if _, err := os.Stat(path); err != nil {
			return errors.Join(fmt.Errorf("no program for the container %s", p.name), err)
		}
		args := slices.Concat(p.args, []string{"--kubeconfig=" + s.kubeconfig})
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(strings.TrimLeft(a, "-"), "leader-election") }) {
			args = append(args, "--leader-election-namespace="+namespace)
		}
		args = slices.Concat(args, quickRetries, s.options.Flags[p.name])
		s.sidecars = append(s.sidecars, keepRunning(s.bed.Cluster, process.Spec{
			Name: p.name, Path: path, Args: args, Env: append(s.bed.Env(), p.env...), Dir: "/",
		}))
	}
	return nil
}
