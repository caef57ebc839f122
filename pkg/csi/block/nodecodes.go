// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package block

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/host"
)

// nodeCode gives the code of an error of the node service; codes.Unknown if it knows none. For the kubelet, Aborted, Unavailable and
// DeadlineExceeded mean that the volume may be staged in part, so that it unstages one that is not needed any more; all others mean that
// nothing is left. FailedPrecondition from NodeExpandVolume would mean that a volume cannot grow while it is mounted.
func nodeCode(err error) codes.Code {
	var busy *host.BusyError
	var absent *host.MissingToolError
	switch {
	case errors.As(err, &busy):
		return codes.Aborted
	case errors.Is(err, host.ErrInvalid):
		return codes.InvalidArgument
	case errors.Is(err, host.ErrLeftBehind), errors.Is(err, host.ErrNotProven), errors.Is(err, host.ErrNoDaemon), errors.As(err, &absent),
		errors.Is(err, host.ErrTooSmall), errors.Is(err, host.ErrNotLoggedOut), errors.Is(err, errPlaceUnknown):
		return codes.Unavailable
	case errors.Is(err, host.ErrNotMounted), errors.Is(err, host.ErrOtherVolume):
		return codes.NotFound
	case errors.Is(err, host.ErrNotBlank), errors.Is(err, host.ErrNotFormatted), errors.Is(err, host.ErrOtherFilesystem),
		errors.Is(err, host.ErrDamaged), errors.Is(err, host.ErrInUse), errors.Is(err, host.ErrNotStaged), errors.Is(err, host.ErrOtherMount),
		errors.Is(err, host.ErrPublished), errors.Is(err, host.ErrCredentials):
		return codes.FailedPrecondition
	}
	return codes.Unknown
}
