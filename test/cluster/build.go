// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// bundle is a set of programs that are built and cached together.
type bundle struct {
	name string
	// module is the nested module that has or requires the packages.
	module string
	// title and estimate are for the line that announces the build.
	title, estimate string
	// packages are built with one go build into one directory. A package that
	// begins with "./" is in the tools module, the rest in its dependencies.
	packages []string
	// withC are packages that need a C compiler. They are built after the others.
	withC []string
	// tags are build tags, with commas.
	tags string
	// programs are the files that the build leaves.
	programs []string
	// links are other names of the first program, which looks at its own name.
	links []string
}

func controlPlane() bundle {
	return bundle{
		name:     "kubernetes",
		module:   toolsModule,
		title:    "etcd and the control plane",
		estimate: "about 7 minutes on two cores the first time",
		packages: []string{"./hyperkube"},
		programs: []string{"hyperkube"},
		links:    []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"},
	}
}

func nodeComponents() bundle {
	return bundle{
		name:     "node",
		module:   toolsModule,
		title:    "kubelet and kube-proxy",
		estimate: "about 3 minutes on two cores after the control plane",
		packages: []string{"./nodekube"},
		programs: []string{"nodekube"},
		links:    []string{"kubelet", "kube-proxy"},
	}
}

func sidecars() bundle {
	return bundle{
		name:     "sidecars",
		module:   toolsModule,
		title:    "the CSI sidecars and csi-sanity",
		estimate: "about 2 minutes on two cores after Kubernetes",
		packages: []string{
			"github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity",
			"github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
			"github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
			"github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
			"github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
			"github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
		},
		programs: []string{"csi-sanity", "csi-attacher", "csi-provisioner", "csi-resizer",
			"csi-snapshotter", "snapshot-controller"},
	}
}

func nodeRuntime() bundle {
	return bundle{
		name:     "runtime",
		module:   runtimeModule,
		title:    "containerd, runc, CNI plugins and a registrar of CSI drivers",
		estimate: "about 3 minutes on two cores",
		packages: []string{
			"./registrar",
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
			"github.com/containernetworking/plugins/plugins/ipam/host-local",
			"github.com/containernetworking/plugins/plugins/main/bridge",
			"github.com/containernetworking/plugins/plugins/main/loopback",
		},
		withC:    []string{"github.com/opencontainers/runc"},
		tags:     "no_btrfs,no_devmapper,no_zfs,no_aufs,seccomp",
		programs: []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "bridge", "host-local", "loopback", "registrar"},
	}
}

// DefaultCacheDir is where built programs are kept between runs: oci-ccm-cluster in
// the user's cache directory.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place to keep built programs: %w", err)
	}
	return filepath.Join(dir, "oci-ccm-cluster"), nil
}

// BuildControlPlane returns the directory of etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl. What is not in the cache
// directory ("" is DefaultCacheDir) is built first; programs that ask at the same time
// build once. Progress gets a line for every long step.
func BuildControlPlane(ctx context.Context, cacheDir string, progress io.Writer) (string, error) {
	return ensureTools(ctx, controlPlane(), cacheDir, progress)
}

// BuildNode is BuildControlPlane for kubelet and kube-proxy.
func BuildNode(ctx context.Context, cacheDir string, progress io.Writer) (string, error) {
	return ensureTools(ctx, nodeComponents(), cacheDir, progress)
}

// BuildSidecars is BuildControlPlane for csi-attacher, csi-provisioner, csi-resizer,
// csi-snapshotter, snapshot-controller and csi-sanity.
func BuildSidecars(ctx context.Context, cacheDir string, progress io.Writer) (string, error) {
	return ensureTools(ctx, sidecars(), cacheDir, progress)
}

// BuildRuntime is BuildControlPlane for what a kubelet needs: containerd, its shim and ctr, runc, the CNI plugins bridge,
// host-local and loopback, and registrar, which stands for node-driver-registrar. It needs a C compiler and libseccomp.
func BuildRuntime(ctx context.Context, cacheDir string, progress io.Writer) (string, error) {
	return ensureTools(ctx, nodeRuntime(), cacheDir, progress)
}

func ensureTools(ctx context.Context, b bundle, cacheDir string, progress io.Writer) (string, error) {
	m, err := findModule(b.module)
	if err != nil {
		return "", err
	}
	return b.ensure(ctx, m, cacheDir, progress)
}

// ensure returns the directory with the bundle's programs, after building them if
// they are not there.
func (b bundle) ensure(ctx context.Context, m module, cacheDir string, progress io.Writer) (string, error) {
	var err error
	if cacheDir == "" {
		if cacheDir, err = DefaultCacheDir(); err != nil {
			return "", err
		}
	}
	key, err := b.key(m)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cacheDir, b.name+"-"+key)
	if b.complete(dir) {
		return dir, nil
	}

	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, dir+".lock", func() {
		fmt.Fprintf(progress, "waiting for another process that builds %s\n", b.title)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if b.complete(dir) { // by the one that held the lock
		return dir, nil
	}
	if err := b.build(ctx, m, dir, progress); err != nil {
		return "", fmt.Errorf("build %s: %w", b.title, err)
	}
	return dir, nil
}

// complete reports whether dir has all programs and links.
func (b bundle) complete(dir string) bool {
	for _, name := range append(append([]string{}, b.programs...), b.links...) {
		info, err := os.Stat(filepath.Join(dir, name)) // follows links
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// build makes dir. The caller holds the lock. A directory of that name appears only
// when it is complete.
func (b bundle) build(ctx context.Context, m module, dir string, progress io.Writer) error {
	start := time.Now()
	fmt.Fprintf(progress, "building %s from the Go module proxy (%s)\n", m.describe(b.title), b.estimate)

	staging := dir + ".building"
	if err := errors.Join(os.RemoveAll(staging), os.RemoveAll(dir)); err != nil { // leftovers of a killed build
		return err
	}
	defer func() { _ = os.RemoveAll(staging) }()
	out, tmp := filepath.Join(staging, "out"), filepath.Join(staging, "tmp")
	if err := errors.Join(os.MkdirAll(out, 0o755), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	if err := m.goBuild(ctx, b, false, out, tmp, progress); err != nil {
		return err
	}
	if len(b.withC) > 0 {
		if err := m.goBuild(ctx, b, true, out, tmp, progress); err != nil {
			return err
		}
	}
	for _, link := range b.links {
		if err := os.Symlink(b.programs[0], filepath.Join(out, link)); err != nil {
			return err
		}
	}
	if !b.complete(out) {
		return fmt.Errorf("the build left no %v: %w", b.programs, fs.ErrNotExist)
	}
	if err := os.Rename(out, dir); err != nil {
		return err
	}
	fmt.Fprintf(progress, "built %s in %s\n", b.title, time.Since(start).Round(time.Second))
	return nil
}
