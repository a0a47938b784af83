package access

import (
	"context"
	"log/slog"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/rights"
)

// MakeOneTime makes a one-time token for the caller's token; an earlier one is worth nothing from then on. Errors: ErrDenied for who has no
// token of the state.
func (a *Access) MakeOneTime(ctx context.Context, who *rights.Caller) (*acl.OneTimeToken, uint64, error) {
	if who == nil || who.Token.SecretID == "" {
		return nil, 0, ErrDenied
	}
	once := &acl.OneTimeToken{
		OneTimeSecretID: acl.Secret(a.deps.IDs.New()), AccessorID: who.Token.AccessorID, ExpiresAt: a.now().Add(acl.OneTimeTTL),
	}
	index, err := a.apply(ctx, &command.PutOneTimeToken{Token: once})
	if err != nil {
		return nil, 0, err
	}
	once.CreateIndex, once.ModifyIndex = index, index
	return once, index, nil
}

// Exchange uses a one-time token up and returns the token that it was made with. Errors: ErrDenied for a secret that is not one's, that was
// used or has expired.
func (a *Access) Exchange(ctx context.Context, secret acl.Secret) (*acl.Token, uint64, error) {
	t, index, err := propose[*acl.Token](ctx, a, &command.ExchangeOneTimeToken{Secret: secret, Time: a.now().UnixNano()})
	if err != nil {
		return nil, 0, err
	}
	return named(a.deps.Store.Snapshot(), t), index, nil
}

// CollectAfter is how long an expired token stays in the state unless the configuration says otherwise, so that a leader whose clock jumped
// takes nothing away that others honour.
const CollectAfter = time.Hour

// CollectEvery is how often Run looks.
const CollectEvery = 5 * time.Minute

// Run removes expired tokens every CollectEvery until ctx ends. It is for the leader.
func (a *Access) Run(ctx context.Context, log *slog.Logger) {
	for clock.Sleep(ctx, a.deps.Clock, CollectEvery) {
		if _, err := a.Collect(ctx); err != nil && ctx.Err() == nil {
			log.Warn("collecting expired tokens", "error", err)
		}
	}
}

// maxCollected bounds the tokens of one entry.
const maxCollected = 4096

// Collect removes tokens that expired Deps.CollectAfter ago and more, and returns how many. The leader calls it now and then. Global tokens
// go where they are written, and here after that.
func (a *Access) Collect(ctx context.Context) (int, error) {
	before := a.now().Add(-a.deps.CollectAfter)
	s := a.deps.Store.Snapshot()
	c := &command.ExpireACLTokens{Time: before.UnixNano()}
	for t := range s.EndingACLTokens() {
		if !t.Expired(before) || len(c.AccessorIDs) == maxCollected {
			break
		}
		if !t.Global || a.deps.Follows == "" {
			c.AccessorIDs = append(c.AccessorIDs, t.AccessorID)
		}
	}
	due := len(c.AccessorIDs) > 0
	for once := range s.OneTimeTokens() {
		due = due || once.Expired(before)
		break
	}
	if !due {
		return 0, nil
	}
	count, _, err := propose[int](ctx, a, c)
	return count, err
}
