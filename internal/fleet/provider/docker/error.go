package docker

import (
	"context"
	"errors"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover/internal/fleet/provider"
)

// kinded gives a daemon's answer its meaning.
func kinded(ctx context.Context, err error) error {
	var e *provider.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return err
	case ctx.Err() != nil:
		return &provider.Error{Kind: provider.Ambiguous, Message: context.Cause(ctx).Error()}
	}
	kind := provider.Ambiguous // also 500: what it did before is not known
	switch {
	case client.IsErrConnectionFailed(err), cerrdefs.IsUnavailable(err):
		kind = provider.Transient
	case cerrdefs.IsNotFound(err):
		kind = provider.NotFound
	case cerrdefs.IsInvalidArgument(err):
		kind = provider.Config
	case cerrdefs.IsPermissionDenied(err), cerrdefs.IsUnauthorized(err):
		kind = provider.Auth
	case cerrdefs.IsConflict(err):
		kind = provider.Transient
	}
	return &provider.Error{Kind: kind, Message: "dockerd: " + err.Error()}
}

// missing turns what is not found into a mistake of the request: its image, its network.
func missing(err error) error {
	if err != nil && cerrdefs.IsNotFound(err) {
		return &provider.Error{Kind: provider.Config, Message: "dockerd: " + err.Error()}
	}
	return err
}
