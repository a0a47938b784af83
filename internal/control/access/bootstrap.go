package access

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
)

// Bootstrap makes the first management token, with the secret or a random one. It works once; again only after an operator left
// the index of the last time on this server (Deps.Reset). Errors: Invalid if the secret is no UUID, if it was done already, or for another
// index.
func (a *Access) Bootstrap(ctx context.Context, secret acl.Secret) (*acl.Token, uint64, error) {
	if secret != "" && !id.Valid(string(secret)) {
		return nil, 0, drover.Errorf(drover.Invalid, "invalid acl token")
	}
	if err := a.own("bootstrap tokens"); err != nil {
		return nil, 0, err
	}
	if secret == "" {
		secret = acl.Secret(a.deps.IDs.New())
	}
	var reset uint64
	if a.deps.Reset != nil {
		var err error
		if reset, err = a.deps.Reset.Read(); err != nil {
			return nil, 0, err
		}
	}
	token := &acl.Token{
		AccessorID: a.deps.IDs.New(), SecretID: secret, Name: "Bootstrap Token", Type: acl.ManagementToken, Global: true, CreateTime: a.now(),
	}
	token.SetHash()
	made, index, err := propose[*acl.Token](ctx, a, &command.BootstrapACL{Token: token, ResetIndex: reset})
	if err != nil {
		return nil, 0, asInvalid(err)
	}
	if reset != 0 {
		if err := a.deps.Reset.Remove(); err != nil {
			return nil, 0, drover.Errorf(drover.Internal, "access control is bootstrapped, but the reset index is still there: remove it: %w", err)
		}
	}
	return made, index, nil
}

// ResetFile is the path of a file with a reset index, in the data folder of a server.
type ResetFile string

// maxResetFile bounds what is read of the file; an index has 20 digits at most.
const maxResetFile = 64

// Read implements ResetIndex. Errors: Invalid if the file has no index, Internal if it cannot be read.
func (f ResetFile) Read() (uint64, error) {
	data, err := os.ReadFile(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, drover.Errorf(drover.Internal, "reading the ACL reset index: %w", err)
	}
	text := strings.TrimSpace(string(data[:min(len(data), maxResetFile)]))
	index, err := strconv.ParseUint(text, 10, 64)
	if err != nil || index == 0 {
		return 0, drover.Errorf(drover.Invalid, "%s: %q is no reset index: write the number that the bootstrap's error names", string(f), text)
	}
	return index, nil
}

// Remove implements ResetIndex.
func (f ResetFile) Remove() error { return os.Remove(string(f)) }
