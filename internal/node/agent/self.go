package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"hash/fnv"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/wake"
)

// IdentityFile is where a node keeps its own token, in its state folder: with it it registers again after a restart.
const IdentityFile = "identity.jwt"

// How long it waits before it asks again: after a failure, and where servers make no tokens.
const (
	identityAgain = time.Minute
	identityNever = time.Hour
)

// self is the node's own identity.
type self struct {
	signer hook.Signer // nil: control makes none
	again  wake.Signal // get another token now

	mu    sync.Mutex
	token string // guarded by mu; "" = none yet
}

// keepIdentity gets the node's own token once it has registered, and another one at half of its life. It ends with ctx.
func (a *Agent) keepIdentity(ctx context.Context) {
	if a.self.signer == nil || !clock.Await(ctx, a.clock, clock.Forever, a.known) {
		return
	}
	for clock.Await(ctx, a.clock, a.renewIdentity(ctx), a.self.again.C()) {
	}
}

// renewIdentity gets another token, and says how long it is good.
func (a *Agent) renewIdentity(ctx context.Context) time.Duration {
	signed, err := a.self.signer.Sign(ctx, []exchange.IdentityRequest{{}})
	switch {
	case ctx.Err() != nil:
		return clock.Forever
	case drover.CodeOf(err) == drover.NotImplemented, err == nil && strings.Contains(signed[0].Refused, errOlder):
		return identityNever // a server of an older program
	case err == nil && signed[0].Refused != "":
		err = drover.Errorf(drover.Forbidden, "%s", signed[0].Refused)
	}
	if err != nil {
		a.log.Warn("the node got no identity of its own", "error", err, "again", identityAgain)
		return identityAgain
	}
	token := signed[0]
	a.self.mu.Lock()
	a.self.token = token.Token
	a.self.mu.Unlock()
	if !a.cfg.InMemory {
		if err := rotation.WriteFile(filepath.Join(a.cfg.StateDir, IdentityFile), []byte(token.Token)); err != nil {
			a.log.Error("the node's identity could not be kept: after a restart it may need an introduction", "error", err)
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(token.Token))
	return claims.Half(token.Expires.Sub(token.Made), float64(h.Sum32())/(1<<32))
}

// errOlder is in the refusal of servers that know no identities of nodes: to them it is one of an allocation that is not there.
const errOlder = "the node has no such allocation"

// IdentityClaims implements exchange.NodeIdentity.
func (a *Agent) IdentityClaims(context.Context) ([]byte, error) {
	a.self.mu.Lock()
	token := a.self.token
	a.self.mu.Unlock()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, drover.Errorf(drover.Unavailable, "the node has no identity yet")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "the node's identity cannot be read")
	}
	return bytes.Clone(text), nil
}

// RenewIdentity implements exchange.NodeIdentity.
func (a *Agent) RenewIdentity(context.Context) error {
	if a.self.signer == nil {
		return drover.Errorf(drover.NotImplemented, "this node's servers make no identities")
	}
	a.self.again.Send()
	return nil
}
