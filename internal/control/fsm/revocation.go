package fsm

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
)

// applyRevocations dispatches the commands about certificates that are refused.
func (e *entry) applyRevocations(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.RevokeCertificate:
		return e.revokeCertificate(c)
	case *command.ForgetRevocations:
		return nil, e.forgetRevocations(c)
	}
	return e.applyACL(c)
}

// revokeCertificate stores a revocation. Intake has checked it. Errors: Invalid, Conflict for more than a cluster may have.
func (e *entry) revokeCertificate(c *command.RevokeCertificate) (*cluster.Revocation, error) {
	if c.Revocation == nil || c.Revocation.ID == "" {
		return nil, drover.Errorf(drover.Invalid, "missing revocation")
	}
	next := *c.Revocation
	next.CreateIndex, next.ModifyIndex = e.index, e.index
	if old := e.txn.Revocation(next.ID); old != nil {
		next.CreateIndex, next.CreateTime = old.CreateIndex, old.CreateTime
		if old.ExpireTime == 0 || next.ExpireTime != 0 && old.ExpireTime > next.ExpireTime {
			next.ExpireTime = old.ExpireTime
		}
	} else {
		count := 0
		for range e.txn.Revocations() {
			count++
		}
		if count >= cluster.MaxRevocations {
			return nil, drover.Errorf(drover.Conflict, "there are %d revocations, which is the limit: take some back, or have the servers get "+
				"another authority", count)
		}
	}
	e.txn.PutRevocation(&next)
	e.tellRevocation("CertificateRevoked", &next)
	return &next, nil
}

// forgetRevocations removes revocations that a person took back, all or none, or those that ended. Errors: NotFound.
func (e *entry) forgetRevocations(c *command.ForgetRevocations) error {
	var doomed []*cluster.Revocation
	for _, id := range c.IDs {
		r := e.txn.Revocation(id)
		switch {
		case r == nil && c.Before == 0:
			return drover.Errorf(drover.NotFound, "revocation not found: %q", id)
		case r == nil || c.Before != 0 && (r.ExpireTime == 0 || r.ExpireTime > c.Before) || slices.Contains(doomed, r):
		default:
			doomed = append(doomed, r)
		}
	}
	for _, r := range doomed {
		e.txn.DeleteRevocation(r)
		e.tellRevocation("CertificateReinstated", r)
	}
	return nil
}

func (e *entry) tellRevocation(kind string, r *cluster.Revocation) {
	e.told = append(e.told, e.event(drover.TopicRevocation, kind, r.ID, "", nil, "Revocation", r))
}
