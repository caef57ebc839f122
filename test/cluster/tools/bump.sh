#!/bin/sh
# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0

# bump.sh VERSION moves this module to another Kubernetes release, for example
# "bump.sh v1.37.3". k8s.io/kubernetes names its staging modules with v0.0.0 and
# local replace lines; here each is replaced by the published module of that release.
set -eu
cd "$(dirname "$0")"
version=${1:?usage: bump.sh v1.MINOR.PATCH}
staging=v0.${version#v1.}

gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
# shellcheck disable=SC2046  # one argument per replace line
go mod edit "-require=k8s.io/kubernetes@$version" \
	"-require=k8s.io/kubectl@$staging" "-require=k8s.io/component-base@$staging" \
	$(sed -n "s#^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => ./staging.*#-replace=\1=\1@$staging#p" "$gomod")
go mod tidy
