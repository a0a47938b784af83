package hook

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/workload"
)

// Signer gets a node's tokens from control; node/identities has one. Errors: Unavailable when no server answered in time.
type Signer interface {
	Sign(ctx context.Context, wanted []exchange.IdentityRequest) ([]exchange.SignedIdentity, error)
}

// exposed are the identities that the task is given, with what is asked for them.
func exposed(allocID string, t *drover.Task) (list []*workload.Identity, wanted []exchange.IdentityRequest) {
	for _, w := range t.AllIdentities() {
		if w.Exposed() {
			list = append(list, w)
			wanted = append(wanted, exchange.IdentityRequest{AllocID: allocID, Task: t.Name, Name: w.Name})
		}
	}
	return list, wanted
}

// identities gives the task its tokens.
type identities struct{ signer Signer }

func (identities) Name() string { return "identity" }

// Once is false: what is in the environment is not kept, and each start begins with new tokens.
func (identities) Once() bool { return false }

// Prestart gets the task's tokens, and puts them where its identities say.
func (h identities) Prestart(ctx context.Context, r *Request) error {
	list, wanted := exposed(r.Alloc.ID, r.Task)
	if len(list) == 0 {
		return nil
	}
	if h.signer == nil {
		return drover.Errorf(drover.Unavailable, "this node gets no tokens: its control makes none")
	}
	signed, err := h.signer.Sign(ctx, wanted)
	if err != nil {
		return fmt.Errorf("getting the task's tokens: %w", err)
	}
	if r.Tokens, err = r.deliver(list, signed); err != nil {
		return err
	}
	vars := map[string]string{}
	for i, w := range list {
		if w.Env {
			vars[w.Variable()] = signed[i].Token
		}
	}
	r.Env = r.Env.With(vars)
	return nil
}

// Renew gets the named tokens of the task anew and replaces their files. It returns how long the tokens are good. Errors: the Signer's, a
// Failure if control refuses one.
func (r *Request) Renew(ctx context.Context, s Signer, names map[string]bool) (map[string]localstate.Life, error) {
	list, wanted := exposed(r.Alloc.ID, r.Task)
	var due []*workload.Identity
	var ask []exchange.IdentityRequest
	for i, w := range list {
		if names[w.Name] {
			due, ask = append(due, w), append(ask, wanted[i])
		}
	}
	signed, err := s.Sign(ctx, ask)
	if err != nil {
		return nil, err
	}
	return r.deliver(due, signed)
}

// deliver writes the tokens' files.
func (r *Request) deliver(list []*workload.Identity, signed []exchange.SignedIdentity) (map[string]localstate.Life, error) {
	if len(signed) != len(list) {
		return nil, drover.Errorf(drover.Internal, "control answered %d tokens of %d", len(signed), len(list))
	}
	lives := map[string]localstate.Life{}
	for i, w := range list {
		name := w.Name
		if signed[i].Refused != "" {
			return nil, &Failure{Err: drover.Errorf(drover.Forbidden, "identity %q: control refuses the token: %s", name, signed[i].Refused)}
		}
		if w.File {
			if err := r.writeToken(w.Path(), signed[i].Token); err != nil {
				return nil, &Failure{Err: fmt.Errorf("identity %q: %w", name, err)}
			}
		}
		lives[name] = localstate.Life{Made: signed[i].Made, Expires: signed[i].Expires}
	}
	return lives, nil
}

// writeToken replaces a token's file. It is for the task's user alone where that one is known here. The user of an image is not: then all
// of the task's users may read it, and who is none of them does not get to the folder.
func (r *Request) writeToken(path, token string) error {
	root, rel, err := r.place(path)
	if err != nil {
		return err
	}
	defer root.Close()
	mode, self := os.FileMode(0o600), os.Getuid()
	uid, known := r.owner()
	if !known || self != 0 && uid != self {
		mode, uid = 0o644, self
	}
	return writeOwned(root, rel, []byte(token), mode, uid)
}

// owner is the user that the task runs as; it is not known of a name that stands in an image.
func (r *Request) owner() (uid int, known bool) {
	if w, ok := r.Driver.(Walker); ok {
		if who, err := w.WalksAs(r.Task); err == nil {
			return int(who), true
		}
	}
	name, _, _ := strings.Cut(r.Env.Replace(r.Task.User), ":")
	if name == "root" {
		return 0, true
	}
	n, err := strconv.ParseUint(name, 10, 31)
	return int(n), err == nil
}
