// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oracle/oci-cloud-controller-manager/pkg/blockvolume"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
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

// refuse is an error of a kind that this package finds by itself.
func refuse(kind error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
}

// isGone says that something is proven not to exist.
func isGone(err error) bool { return errors.Is(err, blockvolume.ErrNotFound) }

// impossible says that an ID cannot be one of the cloud's: there is nothing of that ID.
func impossible(id string) bool {
	_, err := oci.ParseOCID(id)
	return err != nil
}

// exists refuses an ID that cannot be one.
func exists(what, id string) error {
	if impossible(id) {
		return refuse(blockvolume.ErrNotFound, "%s %q: that is no OCID", what, id)
	}
	return nil
}

// required refuses a request in which something is missing: names and values take turns.
func required(namesAndValues ...string) error {
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] == "" {
			return status.Errorf(codes.InvalidArgument, "the request has no %s", namesAndValues[i])
		}
	}
	return nil
}
