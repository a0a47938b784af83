package fleetplane

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/telemetry"
)

// direct is a log that applies what is proposed at once; its server leads always.
type direct struct{ *logged }

func (d direct) IsLeader() bool                                         { return true }
func (d direct) Follow(ctx context.Context, lead func(context.Context)) { lead(ctx) }

func (d direct) Barrier(context.Context) error { return nil }

func (d direct) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	d.do(c)
	return d.index, nil, nil
}

// recording is an intake that notes what the fleet asks.
type recording struct{ asked []string }

func (r *recording) DrainNode(_ context.Context, q drover.DrainRequest) (drover.Outcome, error) {
	what := "undrain "
	if q.Spec != nil {
		what = "drain within " + q.Spec.Deadline.String() + " "
	}
	r.asked = append(r.asked, what+q.NodeID+" by "+q.Meta["by"])
	return drover.Outcome{}, nil
}

func (r *recording) SetEligibility(_ context.Context, nodeID, eligibility string) (drover.Outcome, error) {
	r.asked = append(r.asked, eligibility+" "+nodeID)
	return drover.Outcome{}, nil
}

func (r *recording) PurgeNode(_ context.Context, nodeID string) (drover.Outcome, error) {
	r.asked = append(r.asked, "purge "+nodeID)
	return drover.Outcome{}, nil
}

// opened is a plane over the state machine, with one pool of a provider on this machine.
func opened(t *testing.T, l *logged, in Intake) *Plane {
	t.Helper()
	wall := clock.Wall{}
	f, err := Open(&config.Agent{Datacenter: "dc1", Fleet: &machines.Fleet{
		Providers: []*machines.Provider{{Name: "p", Type: "loopback"}},
	}}, Deps{
		Store: l.state, Log: direct{l}, Intake: in, View: l.view, Servers: servers.Alone(servers.Config{}, servers.Deps{Clock: wall}),
		Metrics: telemetry.NewMetrics(wall), Clock: wall, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler),
		DataDir: t.TempDir(), Forgetful: true, Address: "127.0.0.1:4647",
	})
	require.NoError(t, err)
	return f
}

// Only what runs on the fleet's machines is listed, and what an operator kills is not started again.
func TestWorkOnMachines(t *testing.T) {
	t.Parallel()
	l := newRefusing(t)
	f := opened(t, l.logged, &recording{})
	l.see("bought", "t", "x", "raw_exec")
	l.do(&command.RegisterNode{Node: &drover.Node{ID: "own", Status: drover.NodeStatusReady, NodePool: "default"}, Time: 1})
	job := batch("a", "default", 2)
	l.do(&command.ApplyPlans{Time: 2, Plans: []command.PlanCommit{{Job: job, Placed: []*drover.Allocation{
		placed("x1", "bought", job), placed("x2", "own", job),
	}}}})
	list, err := f.Work().Running(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "x1", list[0].ID)

	require.NoError(t, f.Work().StopAllocation(t.Context(), "x1", ""))
	require.Equal(t, drover.AllocDesiredStop, l.state.Snapshot().Allocation("x1").DesiredStatus)
	require.Equal(t, "killed by an operator", l.state.Snapshot().Allocation("x1").DesiredDescription)
	require.Equal(t, drover.NotFound, drover.CodeOf(f.Work().StopAllocation(t.Context(), "none", "")))
}

// What the fleet has done to nodes says that it was the fleet.
func TestNodesAreSteered(t *testing.T) {
	t.Parallel()
	in := &recording{}
	n := nodes{in}
	require.NoError(t, n.Drain(t.Context(), "n1", time.Minute))
	require.NoError(t, n.Cordon(t.Context(), "n1"))
	require.NoError(t, n.Undrain(t.Context(), "n1"))
	require.NoError(t, n.Forget(t.Context(), "n1"))
	require.Equal(t, []string{"drain within 1m0s n1 by fleet", "ineligible n1", "undrain n1 by fleet", "purge n1"}, in.asked)
}

// A pool whose configuration is wrong is an error at the start.
func TestPoolsOfTheConfigurationAreChecked(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	wall, file := clock.Wall{}, filepath.Join(t.TempDir(), "agent.hcl")
	require.NoError(t, os.WriteFile(file, []byte(`fleet {
  pool "std" {
    provider     = "p"
    node_pool    = "default"
    boot_timeout = "soon"
  }
}
`), 0o600))
	cfg, err := config.Load(file)
	require.NoError(t, err)
	_, err = Open(cfg, Deps{
		Store: l.state, Log: direct{l}, View: l.view, Metrics: telemetry.NewMetrics(wall), Clock: wall, Forgetful: true,
		Servers: servers.Alone(servers.Config{}, servers.Deps{Clock: wall}),
	})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "boot_timeout")
}

// The pools of the file are read when they are asked for. A server that is alone has no others that could differ.
func TestPoolsOfTheFileAreReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.hcl")
	f := opened(t, newLogged(t), &recording{})
	list, err := f.configured()
	require.NoError(t, err)
	require.Nil(t, list, "it has no pool block")
	f.deps.Again = func() (*config.Agent, error) { return config.Load(file) }
	_, err = f.configured()
	require.Error(t, err, "there is no file")
	block := "fleet {\n  pool \"std\" {\n    provider = \"p\"\n" +
		"    type \"t\" {\n      cpu = 1\n      memory = 1\n      price = 1\n    }\n  }\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(block), 0o600))
	list, err = f.configured()
	require.NoError(t, err)
	require.Equal(t, "std", list[0].Name)
	require.Empty(t, f.Differences())
}
