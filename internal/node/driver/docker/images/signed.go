package images

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/registry"
	"github.com/drover-project/drover/internal/signature"
)

// verified asks for the image by the digest that somebody signed who may. The registry is asked what a name means, not the daemon: what
// that has by the name may be anything. Errors: Forbidden, also for an archive; Invalid; those of registry.Error.
func (s *Cache) verified(ctx context.Context, spec *driver.Spec, c Request) (Request, error) {
	if c.Load != "" {
		return c, drover.Errorf(drover.Forbidden, "namespace %q runs signed images only: load: nobody signed what is in an archive: "+
			"push it to a registry", spec.Namespace)
	}
	keys, err := signature.ParseKeys(spec.SignedBy)
	if err != nil {
		return c, drover.Errorf(drover.Invalid, "the keys of namespace %q: %w", spec.Namespace, err)
	}
	account, err := s.credentials(ctx, c)
	if err != nil {
		return c, err
	}
	with := registry.Account{Username: account.Username, Password: account.Password, Token: account.Token}
	fresh := c.ForcePull || latest(c.Ref) && !spec.Pool
	signed, err := s.signed.Verify(ctx, c.Ref, with, keys, fresh)
	if drover.CodeOf(err) == drover.Unavailable && fresh && !c.ForcePull { // what was found before serves where there is no registry
		if former, ferr := s.signed.Verify(ctx, c.Ref, with, keys, false); ferr == nil {
			s.cfg.Log.Warn("using the image that was signed before", "image", c.Ref, "as", former.Ref, "error", err)
			signed, err = former, nil
		}
	}
	if err != nil {
		return c, drover.Errorf(drover.CodeOf(err), "namespace %q runs signed images only: %w", spec.Namespace, err)
	}
	c.Ref, c.ForcePull = signed.Ref, false
	return c, nil
}
