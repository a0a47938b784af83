package image

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/registry"
	"github.com/drover-project/drover/internal/signature"
)

// verified asks for the image by the digest that somebody signed who may. Errors: Forbidden, also for what has no registry; Invalid;
// those of registry.Error.
func (s *Store) verified(ctx context.Context, r Request) (Request, error) {
	keys, err := signature.ParseKeys(r.SignedBy)
	if err != nil {
		return r, drover.Errorf(drover.Invalid, "the keys of namespace %q: %w", r.Namespace, err)
	}
	if isPath(r.Ref) {
		return r, drover.Errorf(drover.Forbidden, "namespace %q runs signed images only: image %s is a path, which nobody signed: "+
			"push it to a registry", r.Namespace, r.Ref)
	}
	signed, err := s.signed.Verify(ctx, r.Ref, registry.Account{Username: r.Username, Password: r.Password}, keys, r.Pull)
	if err != nil {
		return r, drover.Errorf(drover.CodeOf(err), "namespace %q runs signed images only: %w", r.Namespace, err)
	}
	s.opts.Log.Debug("the image is signed", "image", r.Ref, "as", signed.Ref, "key", signed.Key)
	r.Ref, r.Pull = signed.Ref, false
	return r, nil
}
