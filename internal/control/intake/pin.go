package intake

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/registry"
	"github.com/drover-project/drover/internal/tenant"
)

// pinPatience bounds all that is asked about the images of one job: a registry that drips would hold the registration open for each.
const pinPatience = time.Minute

// pin gives the images of a canonical job the digests that their registries have under their names now, where its namespace says so. So the
// job's version says which bytes run, wherever and whenever an allocation of it starts. Errors: Invalid with the field, Unavailable if a
// registry does not answer.
func (in *Intake) pin(ctx context.Context, j *drover.Job) (err error) {
	ns := in.deps.Store.Snapshot().Namespace(j.Namespace)
	known := map[string]string{}
	ctx, cancel := in.deps.Clock.WithTimeout(ctx, pinPatience)
	defer cancel()
	each(j, func(at string, t *drover.Task) {
		ref := tenant.Unpinned(ns, t)
		if ref == "" || err != nil || in.deps.Images == nil {
			return
		}
		account, why := accountOf(t)
		if why != "" {
			err = drover.Errorf(drover.Invalid, "job validation: %s.config.auth: %s", at, why)
			return
		}
		key := strings.Join([]string{ref, account.Username, account.Password}, "\x00")
		digest := known[key]
		if digest == "" {
			if digest, err = in.deps.Images.Resolve(ctx, ref, account); err != nil {
				code := drover.Invalid
				if drover.CodeOf(err) == drover.Unavailable {
					code = drover.Unavailable
				}
				if context.Cause(ctx) != nil && len(known) > 0 {
					err = fmt.Errorf("all images of the job may take %s, and %d were found out in it: %w", pinPatience, len(known), err)
				}
				err = drover.Errorf(code, "job validation: %s.config.image (namespace %q): this server cannot find out its digest: %w; "+
					"write the image with its digest, as in %s@sha256:…", at, j.Namespace, err, ref)
				return
			}
			known[key] = digest
		}
		t.Config["image"] = ref + "@" + digest
	})
	return err
}

// accountOf is the account at the registry that a task's configuration has, or why it cannot be known.
func accountOf(t *drover.Task) (a registry.Account, why string) {
	block, _ := t.Config["auth"].(map[string]any)
	switch list := t.Config["auth"].(type) { // of a file's blocks
	case []map[string]any:
		if len(list) > 0 {
			block = list[0]
		}
	case []any:
		if len(list) > 0 {
			block, _ = list[0].(map[string]any)
		}
	}
	a.Username, _ = block["username"].(string)
	a.Password, _ = block["password"].(string)
	if strings.Contains(a.Username+a.Password, "${") {
		return a, "it cannot be interpolated where the servers look digests up: write the image with its digest"
	}
	return a, ""
}
