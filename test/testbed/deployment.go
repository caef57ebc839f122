// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// storageController is the container of the storage Deployment that is ours.
const storageController = "oci-csi-controller-driver"

// workload is what a Deployment of manifests says, with the kubelet's part done: containers are programs on this machine.
type workload struct {
	account  string
	programs []program
}

// program is a container as a process.
type program struct {
	name string // of the executable
	args []string
	env  []string
}

// findWorkload finds the Deployment of our CSI controller among objects.
func findWorkload(objects []*unstructured.Unstructured) (*appsv1.Deployment, error) {
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			return nil, fmt.Errorf("deployment %s: %w", o.GetName(), err)
		}
		if slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c v1.Container) bool { return executable(&c) == storageController }) {
			return &d, nil
		}
	}
	return nil, fmt.Errorf("no Deployment with a container of %s", storageController)
}

// executable is the program that a container runs: its command, or that of the sidecar image.
func executable(c *v1.Container) string {
	if len(c.Command) > 0 {
		return path.Base(c.Command[0])
	}
	name, _, _ := strings.Cut(path.Base(c.Image), ":")
	return name
}

// processes turns the containers into processes: directories that containers share are below dir, and the sidecars of file
// services, which this controller does not serve, are left out.
func processes(d *appsv1.Deployment, dir string) (workload, error) {
	spec := &d.Spec.Template.Spec
	w := workload{account: spec.ServiceAccountName}
	shared := map[string]string{}
	for _, v := range spec.Volumes {
		if v.EmptyDir != nil {
			shared[v.Name] = filepath.Join(dir, v.Name)
			if err := os.MkdirAll(shared[v.Name], 0o755); err != nil {
				return w, err
			}
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		p := program{name: executable(c)}
		place := func(text string) string {
			for _, m := range c.VolumeMounts {
				if to := shared[m.Name]; to != "" {
					text = strings.ReplaceAll(text, strings.TrimSuffix(m.MountPath, "/"), to)
				}
			}
			return text
		}
		args := c.Args
		if len(c.Command) > 1 {
			args = slices.Concat(c.Command[1:], args)
		}
		for _, a := range args {
			if portFlag(a) {
				continue // beds on one machine would want the same port
			}
			p.args = append(p.args, place(a))
		}
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				p.env = append(p.env, e.Name+"="+place(e.Value))
			}
		}
		if !ofOtherServices(p.args) {
			w.programs = append(w.programs, p)
		}
	}
	return w, nil
}

func portFlag(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name == "http-endpoint" || name == "metrics-address"
}

// ofOtherServices says whether a sidecar talks to the socket of file storage or Lustre.
func ofOtherServices(args []string) bool {
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name == "csi-address" && path.Base(value) != "csi.sock" {
			return true
		}
	}
	return false
}
