package wire

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
)

const codeHeader = "Drover-Code"

var connectCodes = map[drover.Code]connect.Code{
	drover.Internal: connect.CodeInternal, drover.Invalid: connect.CodeInvalidArgument, drover.NotFound: connect.CodeNotFound,
	drover.Gone: connect.CodeNotFound, drover.Conflict: connect.CodeAborted, drover.NotLeader: connect.CodeFailedPrecondition,
	drover.Unauthorized: connect.CodeUnauthenticated, drover.Forbidden: connect.CodePermissionDenied,
	drover.Unavailable: connect.CodeUnavailable, drover.Exhausted: connect.CodeResourceExhausted,
	drover.RateLimited: connect.CodeResourceExhausted, drover.Canceled: connect.CodeCanceled,
	drover.TooLarge: connect.CodeOutOfRange, drover.NotImplemented: connect.CodeUnimplemented,
}

// Wrap makes an error of connect's of it, which has the drover code beside connect's.
func Wrap(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	}
	code := drover.CodeOf(err)
	out := connect.NewError(connectCodes[code], errors.New(err.Error()))
	out.Meta().Set(codeHeader, code.String())
	return out
}

// Unwrap turns what Wrap made back, at the other end. What the other side did not say (a broken connection) is Unavailable.
func Unwrap(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	var ce *connect.Error
	if !errors.As(err, &ce) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return drover.Errorf(drover.Unavailable, "link: %w", err)
	}
	if name := ce.Meta().Get(codeHeader); name != "" {
		return drover.Errorf(drover.ParseCode(name), "%s", ce.Message())
	}
	switch ce.Code() {
	case connect.CodeCanceled:
		return context.Canceled
	case connect.CodeDeadlineExceeded:
		return context.DeadlineExceeded
	case connect.CodeUnauthenticated:
		return drover.Errorf(drover.Unauthorized, "link: %s", ce.Message())
	}
	return drover.Errorf(drover.Unavailable, "link: %s", ce.Message())
}
