package attention

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
)

// patience is how long the planes may take to say how they are.
const patience = 2 * time.Second

// Environments are those of the execution service.
type Environments interface {
	// Environments lists those of a namespace; "*" is all.
	Environments(ctx context.Context, namespace string) ([]execution.Environment, error)
	PoolStatus(ctx context.Context, environmentID string) (execution.PoolStatus, error)
}

// Fleet is what buys machines.
type Fleet interface {
	Pools(ctx context.Context) ([]fleet.PoolStatus, error)
	// Instances lists the machines of a pool; "" is all.
	Instances(ctx context.Context, pool string) ([]fleet.Instance, error)
}

// Sources are what a server that leads knows of the cluster.
type Sources struct {
	State        func() insight.State
	Health       func() agent.AutopilotHealth // of the servers
	Environments Environments
	Fleet        Fleet
	Clock        clock.Clock
}

// Facts gathers what is known. What a plane does not say within some seconds is in Unknown.
func (s Sources) Facts(ctx context.Context) insight.Facts {
	health := s.Health()
	f := insight.Facts{
		Now: s.Clock.Now(), State: s.State(),
		Servers: insight.Servers{Healthy: health.Healthy, Tolerance: health.FailureTolerance},
		Unknown: map[string]string{},
	}
	for _, one := range health.Servers {
		f.Servers.List = append(f.Servers.List, insight.Server{
			ID: one.ID, Name: one.Name, Status: one.SerfStatus, Healthy: one.Healthy, Voter: one.Voter, Since: one.StableSince,
		})
	}
	within, cancel := s.Clock.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if f.Environments, err = s.runners(within); err != nil {
		f.Unknown[cluster.AreaEnvironments] = err.Error()
	}
	if f.Pools, err = s.Fleet.Pools(within); err == nil {
		f.Machines, err = s.Fleet.Instances(within, "")
	}
	if err != nil {
		f.Unknown[cluster.AreaFleet] = err.Error()
	}
	return f
}

// runners is how the pools of all environments stand.
func (s Sources) runners(ctx context.Context) ([]execution.PoolStatus, error) {
	environments, err := s.Environments.Environments(ctx, "*")
	if err != nil {
		return nil, err
	}
	out := make([]execution.PoolStatus, 0, len(environments))
	for _, e := range environments {
		status, err := s.Environments.PoolStatus(ctx, e.Key())
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
