// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"path/filepath"

	"github.com/oracle/oci-cloud-controller-manager/test/testbed"
)

// pauseImage is that of the first container of each pod.
const pauseImage = "localhost/pause:1"

// containerdConfig is the configuration of a node's containerd. Not every machine lets root lower the scores by which the kernel
// chooses what to end when memory runs out.
func containerdConfig(m *machine, programs string) string {
	return fmt.Sprintf(`version = 3
root = %[1]q
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = %[2]q
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %[3]q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%[4]q]
    conf_dir = %[5]q
    conf_template = %[6]q
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = %[7]q
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %[8]q
      SystemdCgroup = false
`, filepath.Join(m.dir, "containerd"), socket, pauseImage, programs, filepath.Join(m.dir, "cni"), filepath.Join(m.dir, "cni.tmpl"),
		filepath.Join(programs, "containerd-shim-runc-v2"), filepath.Join(programs, "runc"))
}

// cniConfig is the template of the pod network's configuration: containerd fills in the range that the Node has for pods.
func cniConfig(m *machine) string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": true,
  "ipam": {"type": "host-local", "dataDir": %q, "ranges": [{{range $i, $r := .PodCIDRRanges}}{{if $i}},{{end}}[{"subnet": "{{$r}}"}]{{end}}]}
}]}
`, filepath.Join(m.dir, "ipam"))
}

// kubeletConfig is the configuration of a node's kubelet.
func kubeletConfig(m *machine) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
providerID: %[1]s
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s/%[3]s
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
containerRuntimeEndpoint: unix://%[4]s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}}
authorization: {mode: Webhook}
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: 20000
makeIPTablesUtilChains: false
# Not this machine's resources are of interest.
evictionHard: {memory.available: 10Mi, nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
imageGCHighThresholdPercent: 100
# Containers that tests kill start again at once; it is not their fault.
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
resolvConf: %[5]s
nodeStatusUpdateFrequency: 4s
nodeLeaseDurationSeconds: 16
syncFrequency: 10s
volumeStatsAggPeriod: 10s
`, testbed.InstanceID(m.index), suite, m.name, socket, filepath.Join(m.dir, "resolv.conf"))
}
