// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package bodies

import _ "embed"

//go:embed lio.sh
var lio string

// LIOScript is a script for /bin/sh to be the command of an ISCSI body: it exposes volumes by the target of this machine's
// kernel.
func LIOScript() string { return lio }
