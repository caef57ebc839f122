// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
)

// controllerCode gives the code of an error of the controller services; codes.Unknown if it knows none.
//
// For the provisioner, ResourceExhausted, InvalidArgument and the like mean that nothing is being made. Aborted, Unavailable and
// DeadlineExceeded mean that it has to come again until it knows. The attacher repeats everything.
func controllerCode(err error) codes.Code {
	for _, known := range []struct {
		is   error
		code codes.Code
	}{
		{blockvolume.ErrPending, codes.Aborted},
		{blockvolume.ErrUnavailable, codes.Unavailable},
		{blockvolume.ErrInvalid, codes.InvalidArgument},
		{blockvolume.ErrOutOfRange, codes.OutOfRange},
		{blockvolume.ErrExists, codes.AlreadyExists},
		{blockvolume.ErrNotFound, codes.NotFound},
		{blockvolume.ErrForbidden, codes.PermissionDenied},
		{blockvolume.ErrExhausted, codes.ResourceExhausted},
		{blockvolume.ErrInstanceFull, codes.ResourceExhausted},
		{blockvolume.ErrInUse, codes.FailedPrecondition},
		{blockvolume.ErrElsewhere, codes.FailedPrecondition},
		{blockvolume.ErrInstanceState, codes.FailedPrecondition},
		{blockvolume.ErrFailed, codes.Internal},
		{ErrNoNode, codes.NotFound},
	} {
		if errors.Is(err, known.is) {
			return known.code
		}
	}
	return codes.Unknown
}

// Code gives the code of an error of the services, for pkg/csi.Options.
func Code(err error) codes.Code {
	if code := nodeCode(err); code != codes.Unknown {
		return code
	}
	return controllerCode(err)
}
