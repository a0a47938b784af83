package enrol

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/tlspin"
)

// introFile is where a node finds the token that introduces it, in its state folder, as Nomad's does.
const introFile = "intro_token.jwt"

// JoinToken is the join token with which this node joins a server, with its pin if it has one. It is what the configuration
// says, its machine's, or what a server of the same user on this machine has left for it. Errors: those of a configured file.
func JoinToken(ctx context.Context, c *config.Client, server string) (string, error) {
	if c.JoinToken != "" || c.JoinTokenFile != "" {
		return gate.ConfiguredToken(c.JoinToken, c.JoinTokenFile, "client.join_token_file")
	}
	if m := c.Machine; m != nil && len(m.Tokens) > 0 {
		return machine.LaunchToken(ctx, m.Metadata, m.Tokens)
	}
	return gate.AnnouncedToken(ctx, server), nil
}

// Tokens returns what this node shows to a server: a join token, and its own identity or its introduction, whichever was made last. It
// is asked before each attempt, as a server that keeps nothing makes a new join token at each start. Errors: those of files.
func Tokens(ctx context.Context, c *config.Client, stateDir, server string) (out exchange.Tokens, err error) {
	if out.Join, err = JoinToken(ctx, c, server); err != nil {
		return out, err
	}
	if out.Join, _, err = tlspin.Split(out.Join); err != nil {
		return out, err
	}
	given, err := keptToken(stateDir, introFile)
	if err != nil {
		return out, err
	}
	own, err := keptToken(stateDir, agent.IdentityFile)
	if err != nil {
		return out, err
	}
	out.Introduction = cmp.Or(c.IntroToken, given)
	introduced, _, _ := claims.Life(out.Introduction) // whether it is still good, the server says
	if made, _, err := claims.Life(own); err == nil && !made.Before(introduced) {
		out.Introduction = own
	}
	return out, nil
}

// keptToken reads a file of the node's folder; "" = there is none.
func keptToken(stateDir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(stateDir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", drover.Errorf(drover.Internal, "reading the node's token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
