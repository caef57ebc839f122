// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/oracle/oci-cloud-controller-manager"

// layers gives each package tree its height. A package may import packages of lower layers and of its own tree.
var layers = map[string]int{
	"internal":          0,
	"pkg/version":       0,
	"pkg/taglabel":      0,
	"pkg/config":        1,
	"pkg/oci":           2,
	"pkg/firewall":      3,
	"pkg/inventory":     3,
	"pkg/podcidr":       3,
	"pkg/blockvolume":   3,
	"pkg/filestorage":   3,
	"pkg/lustre":        3,
	"pkg/host":          3,
	"pkg/loadbalancer":  4, // its plan orders the firewall's steps
	"pkg/cloudprovider": 5,
	"pkg/csi":           5,
	"pkg/flexvolume":    5,
	"pkg/provisioner":   5,
	"cmd":               6,
	"manifests":         6,
	"test":              7,
}

// domain packages know neither a Kubernetes client nor the SDK.
var domain = []string{"pkg/firewall", "pkg/inventory", "pkg/podcidr", "pkg/blockvolume", "pkg/filestorage", "pkg/lustre", "pkg/host", "pkg/loadbalancer"}

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, problem := range violations(p) {
			t.Error(problem)
		}
	}
}

// TestTheRuleCanFail makes sure that the check above is not blind.
func TestTheRuleCanFail(t *testing.T) {
	bad := []goPackage{
		{ImportPath: module + "/pkg/oci", Imports: []string{module + "/pkg/loadbalancer"}},
		{ImportPath: module + "/pkg/csi/block", Imports: []string{module + "/pkg/cloudprovider"}},
		{ImportPath: module + "/pkg/loadbalancer", Imports: []string{"k8s.io/client-go/kubernetes"}},
		{ImportPath: module + "/pkg/inventory", Imports: []string{"github.com/oracle/oci-go-sdk/v65/core"}},
		{ImportPath: module + "/pkg/cloudprovider", Imports: []string{"github.com/oracle/oci-go-sdk/v65/core"}},
		{ImportPath: module + "/pkg/version", Imports: []string{module + "/test/ocisim"}},
		{ImportPath: module + "/test/ocisim", Imports: []string{module + "/pkg/oci"}},
		{ImportPath: module + "/pkg/surprise"},
	}
	for _, p := range bad {
		if len(violations(p)) == 0 {
			t.Errorf("no complaint about %s importing %v", p.ImportPath, p.Imports)
		}
	}
	good := goPackage{ImportPath: module + "/pkg/loadbalancer", Imports: []string{module + "/pkg/oci", "k8s.io/api/core/v1"}}
	if v := violations(good); len(v) != 0 {
		t.Errorf("complaint about a good package: %v", v)
	}
}

func violations(p goPackage) []string {
	from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
	fromTree, fromLayer, known := layerOf(from)
	if !known {
		return []string{p.ImportPath + " has no layer: add it to the table in test/repo, and to docs/architecture.md"}
	}
	var out []string
	complain := func(imp, why string) { out = append(out, from+" imports "+imp+": "+why) }
	for _, imp := range p.Imports {
		switch {
		case strings.HasPrefix(imp, "github.com/oracle/oci-go-sdk/"):
			if fromTree != "pkg/oci" && fromTree != "test" {
				complain(imp, "only pkg/oci touches the SDK")
			}
		case strings.HasPrefix(imp, "k8s.io/client-go"):
			if contains(domain, fromTree) || fromLayer <= layers["pkg/oci"] && fromTree != "test" {
				complain(imp, "no Kubernetes client below the adapters")
			}
		case strings.HasPrefix(imp, "k8s.io/kubernetes"):
			complain(imp, "k8s.io/kubernetes stays out of the main module")
		case strings.HasPrefix(imp, module+"/"):
			to := strings.TrimPrefix(imp, module+"/")
			toTree, toLayer, ok := layerOf(to)
			switch {
			case !ok:
				complain(imp, "it has no layer")
			case strings.HasPrefix(from, "test/ocisim") && strings.HasPrefix(to, "pkg/") && to != "pkg/version":
				complain(imp, "the simulator shares no code with what it tests")
			case toTree != fromTree && toLayer >= fromLayer:
				complain(imp, "imports only point down")
			}
		}
	}
	return out
}

// layerOf finds the tree and the layer of a package path relative to the module.
func layerOf(path string) (tree string, layer int, ok bool) {
	for p := path; p != ""; {
		if l, ok := layers[p]; ok {
			return p, l, true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return "", 0, false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}
