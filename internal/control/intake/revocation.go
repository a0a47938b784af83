package intake

import (
	"context"
	"crypto/x509"
	"log/slog"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
)

// RevokeCertificate has all servers refuse a certificate, or a node. It is for the leader. Errors: Invalid; Conflict for the leader's own
// certificate, which would lock out all who could take that back, and for more than there may be.
func (in *Intake) RevokeCertificate(ctx context.Context, q cluster.RevokeRequest) (*cluster.Revocation, drover.Outcome, error) {
	r, err := q.Revocation(in.now())
	if err != nil {
		return nil, drover.Outcome{}, err
	}
	var own *x509.Certificate
	if in.deps.OwnCertificate != nil {
		own = in.deps.OwnCertificate()
	}
	if own != nil && slices.Contains(cluster.RevokedBy(own), r.ID) {
		return nil, drover.Outcome{}, drover.Errorf(drover.Conflict, "%s is the certificate of the server that leads, and without it nobody "+
			"could take that back: give it another one first, or have another server lead that has another one", r.ID)
	}
	index, result, err := in.deps.Log.Propose(ctx, &command.RevokeCertificate{Revocation: r})
	if err != nil {
		return nil, drover.Outcome{}, err
	}
	stored, ok := result.(*cluster.Revocation)
	if !ok {
		return nil, drover.Outcome{}, drover.Errorf(drover.Internal, "revoking: unexpected result %T", result)
	}
	return stored, drover.Outcome{Index: index}, nil
}

// ReinstateCertificate takes a revocation back. Errors: NotFound.
func (in *Intake) ReinstateCertificate(ctx context.Context, id string) (drover.Outcome, error) {
	return in.propose(ctx, &command.ForgetRevocations{IDs: []string{id}})
}

// How revocations are forgotten whose certificates ended by themselves. They stay for a while, as clocks differ.
const (
	forgetEvery = 5 * time.Minute
	forgetAfter = 24 * time.Hour
	mostForgot  = 1024 // in one entry
)

// ForgetRevocations forgets revocations whose certificates have ended, until ctx ends. It is for the leader.
func (in *Intake) ForgetRevocations(ctx context.Context, log *slog.Logger) {
	for clock.Sleep(ctx, in.deps.Clock, forgetEvery) {
		if err := in.forgetRevocations(ctx); err != nil && ctx.Err() == nil {
			log.Warn("forgetting revocations of certificates that ended", "error", err)
		}
	}
}

func (in *Intake) forgetRevocations(ctx context.Context) error {
	before := in.now().Add(-forgetAfter)
	c := &command.ForgetRevocations{Before: before.UnixNano()}
	for r := range in.deps.Store.Snapshot().Revocations() {
		if r.Expired(before) {
			c.IDs = append(c.IDs, r.ID)
		}
		if len(c.IDs) == mostForgot {
			break
		}
	}
	if len(c.IDs) == 0 {
		return nil
	}
	_, err := in.propose(ctx, c)
	return err
}
