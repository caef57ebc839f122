#!/bin/bash
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0
#
# update-kubernetes.sh 1.37.3: the Kubernetes libraries of the main module and the control plane of test/cluster, in lockstep.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} =~ ^1\.[0-9]+\.[0-9]+$ ]] || { echo "usage: $0 1.MINOR.PATCH" >&2; exit 2; }
lib=v0.${1#1.}

# Only modules that are released together with Kubernetes carry its version; klog, utils and kube-openapi have their own.
mapfile -t libs < <(go list -m -f '{{if not .Main}}{{.Path}} {{.Version}}{{end}}' all | awk '$1 ~ /^k8s\.io\// && $2 ~ /^v0\.[0-9]+\.[0-9]+$/ && $2 !~ /^v0\.0\.0/ {print $1}')
go get "${libs[@]/%/@$lib}"
go mod tidy

test/cluster/tools/bump.sh "v$1"
hack/align-modules.sh
echo "Kubernetes libraries are at $lib. Now: make test; note the version in CHANGELOG.md."
