// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/cmd/internal/usage"
	"github.com/oracle/oci-cloud-controller-manager/pkg/csi"
)

// options are the flags. Names and defaults of those that release v1.35 has are as there (contract storage.md §1.6).
type options struct {
	endpoint, nodeID, logLevel, master, kubeconfig string
	fssEndpoint, lustreEndpoint                    string
	fss                                            bool
	httpEndpoint, hostRoot, stateDir               string
	maxVolumes                                     int
	paravirtualizedLimit                           bool
	version                                        bool
}

// Defaults of flags that are new.
const (
	defaultHostRoot = "/host"
	// stateName is the directory of records, beside the socket: both are in the plugin's directory of the host.
	stateName = "volumes"
)

// parse reads the command line. As the old binary does, it takes one dash or two.
func parse(args []string, help io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet(programName, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error that is returned is enough
	fs.StringVar(&o.endpoint, "endpoint", "unix://tmp/csi.sock", "Socket of the block volume driver.")
	fs.StringVar(&o.nodeID, "nodeid", "", "Name of the Node. Required.")
	fs.StringVar(&o.logLevel, "loglevel", "info", "How much to log: debug, info, warn or error. --v, if it is higher, goes before it.")
	fs.StringVar(&o.master, "master", "", "URL of the Kubernetes API, for use outside of a cluster.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "File with the access to the Kubernetes API, for use outside of a cluster.")
	fs.StringVar(&o.httpEndpoint, "http-endpoint", "", "Address (\":9808\") of /healthz, /readyz and /metrics. None is served without it.")
	fs.StringVar(&o.hostRoot, "host-root", defaultHostRoot, "Where the host's root directory is seen, with all that is mounted below it; / is this machine itself.")
	fs.StringVar(&o.stateDir, "state-dir", "", "Directory for records of connected volumes, which has to outlive the process. Default: \"volumes\" beside the socket.")
	fs.IntVar(&o.maxVolumes, "max-volumes-per-node", 0, "How many volumes of this driver the node can have. 0: as its shape says.")
	fs.BoolVar(&o.paravirtualizedLimit, "paravirtualized-attach-limit", false, "Take the limit of the shape for paravirtualized attachments, which is lower than that for iSCSI.")
	fs.BoolVar(&o.version, "version", false, "Print the version and exit.")
	const later = " File systems are not served by this release."
	fs.StringVar(&o.fssEndpoint, "fss-endpoint", "unix://tmp/fss/csi.sock", "Without effect."+later)
	fs.BoolVar(&o.fss, "fss-csi-driver-enabled", true, "Without effect."+later)
	fs.StringVar(&o.lustreEndpoint, "lustre-endpoint", "unix:///lustre/csi.sock", "Without effect."+later)
	fs.String("lustre-csi-address", "/lustre/csi.sock", "Without effect."+later)
	fs.String("lustre-kubelet-registration-path", "/var/lib/kubelet/plugins/lustre.csi.oraclecloud.com/csi.sock", "Without effect."+later)
	own := usage.Names(fs)
	klog.InitFlags(fs)
	fs.Usage = func() {}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage.Print(help, programName, fs, append(own, "v", "vmodule"))
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; --help lists the flags", err)
	}
	if o.version {
		return o, nil
	}
	if err := setVerbosity(fs, o.logLevel); err != nil {
		return nil, err
	}
	return o, o.complete(fs.Args())
}

// complete checks the flags, and fills in what follows from others.
func (o *options) complete(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("there are no arguments but flags, got %q", rest)
	case o.nodeID == "":
		return errors.New("--nodeid is required: the name of the Node")
	case o.maxVolumes < 0:
		return fmt.Errorf("--max-volumes-per-node must not be negative, got %d", o.maxVolumes)
	}
	socket, err := csi.SocketPath(o.endpoint)
	if err != nil {
		return err
	}
	if o.stateDir == "" {
		o.stateDir = filepath.Join(filepath.Dir(socket), stateName)
	}
	o.hostRoot = strings.TrimRight(o.hostRoot, "/")
	return nil
}

// setVerbosity lets klog log to standard error only, and as much as the higher one of --loglevel and --v says.
func setVerbosity(fs *flag.FlagSet, level string) error {
	for name, value := range map[string]string{"logtostderr": "true", "alsologtostderr": "false"} {
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	wanted := map[string]int{"debug": 4, "warn": -1, "error": -1, "dpanic": -1, "panic": -1, "fatal": -1}
	const info = 2 // one line for each call that changes something
	n, known := wanted[strings.ToLower(level)]
	if !known {
		n = info
	}
	n = max(n, 0)
	var err error
	fs.Visit(func(f *flag.Flag) { // those that were given
		if f.Name == "v" {
			var given int
			given, err = strconv.Atoi(f.Value.String())
			n = max(n, given)
		}
	})
	return errors.Join(err, fs.Set("v", strconv.Itoa(n)))
}

// withoutEffect describes what was asked for, and is not there.
func (o *options) withoutEffect(lustre bool) []string {
	var list []string
	if o.fss {
		list = append(list, "file storage (fss.csi.oraclecloud.com) is not served by this release: nothing listens at "+o.fssEndpoint+"; --fss-csi-driver-enabled=false says that this is known")
	}
	if lustre {
		list = append(list, "Lustre (lustre.csi.oraclecloud.com) is not served by this release: nothing listens at "+o.lustreEndpoint+"; LUSTRE_DRIVER_ENABLED=false says that this is known")
	}
	return list
}
