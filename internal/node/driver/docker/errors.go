package docker

import (
	"context"
	"errors"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// daemonError gives a daemon's answer one of our codes.
func daemonError(err error) error {
	code := drover.Internal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case client.IsErrConnectionFailed(err) && strings.Contains(err.Error(), "permission denied"): // as the client puts it
		return drover.Errorf(drover.Forbidden, "%w: run the agent as root, or put its user into the socket's group (sudo usermod -aG docker USER)", err)
	case client.IsErrConnectionFailed(err):
		code = drover.Unavailable
	case cerrdefs.IsNotFound(err):
		code = drover.NotFound
	case cerrdefs.IsInvalidArgument(err):
		code = drover.Invalid
	case cerrdefs.IsConflict(err):
		code = drover.Conflict
	case cerrdefs.IsPermissionDenied(err), cerrdefs.IsUnauthorized(err):
		code = drover.Forbidden
	case cerrdefs.IsUnavailable(err):
		code = drover.Unavailable
	}
	return drover.Errorf(code, "dockerd: %w", err)
}

// final are parts of what dockerd and the runtime say about tasks that will never start, whatever the code it has.
var final = []string{ // a constant
	"unknown or invalid runtime name", "no such file or directory", "invalid mount config", "not a directory", "unknown capability",
	"invalid ulimit", "network not found", "operation not permitted", "linux spec capabilities", "is not an absolute path",
}

// startError says whether trying again can help.
func startError(err error) error {
	if err == nil {
		return nil
	}
	if e := (*driver.StartError)(nil); errors.As(err, &e) {
		return err
	}
	recoverable := true
	switch drover.CodeOf(err) {
	case drover.Invalid, drover.NotFound, drover.Forbidden, drover.NotImplemented:
		recoverable = false
	case drover.Unavailable:
	default:
		for _, text := range final {
			if strings.Contains(strings.ToLower(err.Error()), text) && !errors.Is(err, context.Canceled) {
				recoverable = false
			}
		}
	}
	return &driver.StartError{Recoverable: recoverable, Err: err}
}
