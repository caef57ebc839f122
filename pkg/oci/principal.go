// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import "github.com/oracle/oci-go-sdk/v65/common"

// Principal is who calls the API: what UserPrincipal, InstancePrincipal, OKEWorkloadIdentity and TokenExchange return. The
// name keeps the SDK out of the packages that only pass one on.
type Principal = common.ConfigurationProvider
