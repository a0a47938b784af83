package fleetplane

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/office"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// procFleetAudit asks a server for what it did as it led the fleet.
const procFleetAudit = "Fleet.Audit"

// auditWithin is how long another server's audit log is waited for.
const auditWithin = 2 * time.Second

// configuredPools are the pools of a configuration; nil = it has none. Errors: Invalid.
func configuredPools(cfg *config.Agent) (list []*fleet.Policy, err error) {
	if cfg.Fleet == nil {
		return nil, nil
	}
	for _, p := range cfg.Fleet.Pools {
		policy, err := p.Policy()
		if err != nil {
			return nil, err
		}
		list = append(list, policy)
	}
	return list, nil
}

// configured are the pools of this server's files as they are now. Errors: Invalid.
func (f *Plane) configured() ([]*fleet.Policy, error) {
	cfg := f.agent
	if f.deps.Again != nil {
		var err error
		if cfg, err = f.deps.Again(); err != nil {
			return nil, err
		}
	}
	return configuredPools(cfg)
}

// Differences says in what the pools of this server's files are not the fleet's. A server that is alone has no others.
func (f *Plane) Differences() []string {
	if !f.deps.Servers.Clustered() {
		return nil
	}
	list, err := f.configured()
	if err != nil {
		return []string{err.Error()}
	}
	return office.Differs(f.deps.Store.Snapshot(), list)
}

// otherAudits asks all other servers at once for what they did; nil for a server that is alone.
func (f *Plane) otherAudits() func(context.Context, office.AuditQuery) ([]fleet.Audit, []string) {
	c := f.deps.Servers
	if !c.Clustered() {
		return nil
	}
	return func(ctx context.Context, q office.AuditQuery) (all []fleet.Audit, silent []string) {
		ctx, cancel := f.deps.Clock.WithTimeout(ctx, auditWithin)
		defer cancel()
		var others []servers.Server
		for _, s := range c.List() {
			if s.ID != c.Self().ID {
				others = append(others, s)
			}
		}
		answers, errs := make([][]fleet.Audit, len(others)), make([]error, len(others))
		var wait sync.WaitGroup
		for i, s := range others {
			wait.Go(func() { // ends with ctx
				answers[i], errs[i] = peercall.Call[[]fleet.Audit](ctx, c.Client(), s.Address, procFleetAudit, q)
			})
		}
		wait.Wait()
		for i, s := range others {
			if errs[i] != nil {
				silent = append(silent, s.Name)
			}
			all = append(all, answers[i]...)
		}
		return all, silent
	}
}
