// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"path"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// Codes gives the code of an error of the domain, such as codes.NotFound; codes.OK or codes.Unknown if it knows none.
type Codes func(error) codes.Code

// measure logs and times each call. It is the outermost: it sees what the caller gets.
func measure(base klog.Logger, driver string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		method := path.Base(info.FullMethod)
		logger := base.WithValues("method", method)
		began := time.Now()
		response, err := handler(klog.NewContext(ctx, logger), request)
		took := time.Since(began)
		operations.WithLabelValues(driver, info.FullMethod, status.Code(err).String()).Observe(took.Seconds())
		switch {
		case err != nil:
			logger.Error(err, "Call failed", "request", loggable(request), "took", took)
		case quiet(method):
			logger.V(5).Info("Call", "request", loggable(request), "took", took)
		default:
			logger.V(2).Info("Call", "request", loggable(request), "response", loggable(response), "took", took)
		}
		return response, err
	}
}

// quiet names calls that come every few seconds and change nothing.
func quiet(method string) bool {
	switch method {
	case "Probe", "GetPluginInfo", "GetPluginCapabilities", "ControllerGetCapabilities", "GroupControllerGetCapabilities",
		"NodeGetCapabilities", "NodeGetVolumeStats":
		return true
	}
	return false
}

// translate gives errors the codes that the specification of CSI asks for.
func translate(code Codes) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		if err == nil {
			return response, nil
		}
		if coded, is := status.FromError(err); is {
			return nil, coded.Err() // its message does not begin with the code once more
		}
		return nil, status.Error(codeOf(err, code), err.Error())
	}
}

// codeOf is the code of an error. A deadline of the caller comes before what the domain makes of it: the work may go on in the
// cloud, and the caller has to come again.
func codeOf(err error, code Codes) codes.Code {
	var coded interface{ GRPCStatus() *status.Status }
	if errors.As(err, &coded) {
		return coded.GRPCStatus().Code()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	if code != nil {
		if c := code(err); c != codes.OK && c != codes.Unknown {
			return c
		}
	}
	return codes.Internal
}

// recoverPanic keeps the process alive for the other volumes.
func recoverPanic(driver string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
		defer func() {
			if r := recover(); r != nil {
				panics.WithLabelValues(driver, info.FullMethod).Inc()
				klog.FromContext(ctx).Error(nil, "Panic in a call; please report it", "panic", r, "stack", string(debug.Stack()))
				response, err = nil, status.Errorf(codes.Internal, "%s failed by a fault of this program; its log has the details", path.Base(info.FullMethod))
			}
		}()
		return handler(ctx, request)
	}
}
