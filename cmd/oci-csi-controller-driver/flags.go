// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/usage"
)

// options are the flags. Names and defaults of those that release v1.35 has are as there (contract storage.md §1.5).
type options struct {
	endpoint, fssEndpoint, lustreEndpoint string
	master, kubeconfig                    string
	cloudConfig                           string
	httpEndpoint                          string
	strictConfig                          bool
	strictParameters                      bool
	publishedNodes                        bool
	version                               bool
}

// parse reads the command line. As the old binary does, it takes one dash or two.
func parse(args []string, help io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet(programName, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error that is returned is enough
	fs.StringVar(&o.endpoint, "endpoint", "unix://tmp/csi.sock", "Socket of the block volume driver.")
	fs.StringVar(&o.master, "master", "", "URL of the Kubernetes API, for use outside of a cluster.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "File with the access to the Kubernetes API, for use outside of a cluster.")
	fs.StringVar(&o.cloudConfig, "cloud-config", "", "Path of the cloud config. Default: $CONFIG_YAML_FILENAME, else the first that exists of "+
		strings.Join(configPaths(), " and ")+".")
	fs.StringVar(&o.httpEndpoint, "http-endpoint", "", "Address (\":9809\") of /healthz, /readyz and /metrics. None is served without it.")
	fs.BoolVar(&o.strictConfig, "strict-config", false, "Refuse to start with a cloud config that has unknown or misspelt keys.")
	fs.BoolVar(&o.strictParameters, "strict-parameters", false, "Refuse volumes and snapshots whose class has unknown parameters, instead of warning of them.")
	fs.BoolVar(&o.publishedNodes, "list-volumes-published-nodes", false,
		"Tell external-attacher to which nodes volumes are attached, so that it attaches again what was detached by hand. Each time that it asks, all volumes and attachments are listed.")
	fs.BoolVar(&o.version, "version", false, "Print the version and exit.")
	const later = " File systems are not served by this release."
	fs.StringVar(&o.fssEndpoint, "fss-csi-endpoint", "unix://tmp/csi-fss.sock", "Without effect."+later)
	fs.StringVar(&o.lustreEndpoint, "lustre-csi-endpoint", "unix://tmp/csi-lustre.sock", "Without effect."+later)
	own := usage.Names(fs)
	klog.InitFlags(fs)
	fs.Usage = func() {}
	if err := setLogging(fs); err != nil {
		return nil, err
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage.Print(help, programName, fs, append(own, "v", "vmodule"))
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; --help lists the flags", err)
	}
	if rest := fs.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("there are no arguments but flags, got %q", rest)
	}
	return o, nil
}

// setLogging sets other defaults for klog: standard error only, and one line for each call that changes something.
func setLogging(fs *flag.FlagSet) error {
	for name, value := range map[string]string{"logtostderr": "true", "v": "2"} {
		f := fs.Lookup(name)
		if err := f.Value.Set(value); err != nil {
			return err
		}
		f.DefValue = value
	}
	return nil
}

// withoutEffect describes what sidecars may ask for, and is not there.
func (o *options) withoutEffect(lustre bool) []string {
	list := []string{"file storage (fss.csi.oraclecloud.com) is not served by this release: nothing listens at " + o.fssEndpoint}
	if lustre {
		list = append(list, "Lustre (lustre.csi.oraclecloud.com) is not served by this release: nothing listens at "+o.lustreEndpoint+
			"; LUSTRE_CSI_CONTROLLER_DRIVER_ENABLED=false says that this is known")
	}
	return list
}
