package server

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
)

// attention gathers what package insight judges. However many ask, it does that for a small part of the time.
type attention struct {
	gather func(ctx context.Context) insight.Facts
	clock  clock.Clock

	turn chan struct{} // holds one: that of who reads or makes the following

	last *insight.Report // the newest one; nil: none yet
	at   time.Time       // when it was made
	took time.Duration   // to make it
}

// rests is how many times as long as it took to make a judgement it serves all who ask.
const rests = 20

// askedFor is how long the planes may take to say how they are.
const askedFor = 2 * time.Second

// For is what of the cluster wants attention, as far as the viewer sees it. Errors: Canceled.
func (a *attention) For(ctx context.Context, v cluster.Viewer) (cluster.Attention, error) {
	select {
	case a.turn <- struct{}{}: // who comes meanwhile has the same judgement
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return cluster.Attention{}, drover.Errorf(drover.Canceled, "waiting for a judgement: %w", context.Cause(ctx))
	}
	if now := a.clock.Now(); a.last == nil || now.Sub(a.at) >= rests*a.took {
		facts := a.gather(ctx)
		if ctx.Err() != nil { // what is unknown by that is not of the cluster
			return cluster.Attention{}, drover.Errorf(drover.Canceled, "judging the cluster: %w", context.Cause(ctx))
		}
		a.last = insight.Judge(facts)
		a.at = a.clock.Now()
		a.took = a.at.Sub(now)
	}
	return a.last.For(v), nil
}

// attention is that of this process, which has a control plane.
func (a *Agent) attention() *attention {
	return &attention{gather: a.facts, clock: a.deps.Clock, turn: make(chan struct{}, 1)}
}

// facts are what this server knows, which leads.
func (a *Agent) facts(ctx context.Context) insight.Facts {
	health := a.control.servers.Operate().AutopilotHealth()
	f := insight.Facts{
		Now: a.deps.Clock.Now(), State: a.control.store.Snapshot(),
		Servers: insight.Servers{Healthy: health.Healthy, Tolerance: health.FailureTolerance},
		Unknown: map[string]string{},
	}
	for _, s := range health.Servers {
		f.Servers.List = append(f.Servers.List, insight.Server{
			ID: s.ID, Name: s.Name, Status: s.SerfStatus, Healthy: s.Healthy, Voter: s.Voter, Since: s.StableSince,
		})
	}
	within, cancel := a.deps.Clock.WithTimeout(ctx, askedFor)
	defer cancel()
	var err error
	if f.Environments, err = a.poolsOfRunners(within); err != nil {
		f.Unknown[cluster.AreaEnvironments] = err.Error()
	}
	office := a.fleet.Office()
	if f.Pools, err = office.Pools(within); err == nil {
		f.Machines, err = office.Instances(within, "")
	}
	if err != nil {
		f.Unknown[cluster.AreaFleet] = err.Error()
	}
	return f
}

// poolsOfRunners is how the pools of all environments stand.
func (a *Agent) poolsOfRunners(ctx context.Context) ([]execution.PoolStatus, error) {
	environments, err := a.exec.Environments(ctx, "*")
	if err != nil {
		return nil, err
	}
	out := make([]execution.PoolStatus, 0, len(environments))
	for _, e := range environments {
		status, err := a.exec.PoolStatus(ctx, e.Key())
		switch {
		case drover.CodeOf(err) == drover.NotFound: // it was deleted meanwhile
			continue
		case err != nil:
			return nil, err
		}
		status.Namespace, status.Environment = execution.SplitKey(e.Key())
		out = append(out, status)
	}
	return out, nil
}
