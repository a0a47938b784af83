package dockererr

import (
	"context"
	"errors"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
)

// Of gives an answer of the daemon's one of our codes; nil stays nil, and the end of a context itself.
func Of(err error) error {
	code := drover.Internal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case client.IsErrConnectionFailed(err) && strings.Contains(err.Error(), "permission denied"): // as the client puts it
		return drover.Errorf(drover.Forbidden,
			"%w: run the agent as root, or put its user into the socket's group (sudo usermod -aG docker USER)", err)
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
