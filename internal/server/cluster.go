package server

import (
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/nomadbackend"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/server/execseam"
)

// poolDeps is where runners are kept: here, or on an existing Nomad cluster.
func (a *Agent) poolDeps(opts environment.Options) (runner.Deps, *nomadbackend.Backend, error) {
	c, d := a.control, a.deps
	deps := runner.Deps{
		Snapshot:  func() runner.Snapshot { return c.store.Snapshot() },
		Subscribe: func(index uint64) (runner.Subscription, error) { return execseam.SubscribePools(c.events, index) },
		Workloads: a.workloads, Check: a.checkEnvironment, Clock: d.Clock, Log: d.Log.With("part", "runners"),
	}
	if a.cfg.Exec.Nomad == nil {
		return deps, nil, nil
	}
	b, err := nomadbackend.New(clusterConfig(a.cfg.Exec.Nomad, opts), nomadbackend.Deps{
		Clock: d.Clock, IDs: d.IDs, Log: d.Log.With("part", "nomad"),
	})
	if err != nil {
		return deps, nil, err
	}
	deps.Snapshot, deps.Subscribe, deps.Intake, deps.Workloads, deps.Check = b.Snapshot, b.Subscribe, b, b.Workloads, nil
	return deps, b, nil
}

func clusterConfig(n *config.NomadCluster, opts environment.Options) nomadbackend.Config {
	return nomadbackend.Config{
		Address: n.Address, Token: n.Token, Region: n.Region, Namespace: n.Namespace, CAFile: n.CAFile, CertFile: n.CertFile,
		KeyFile: n.KeyFile, Driver: n.Driver, Environments: opts,
	}
}
