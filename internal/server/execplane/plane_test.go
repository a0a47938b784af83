package execplane

import (
	"context"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/server/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is one of a cluster version.
type log struct{ version int }

func (l *log) Follow(ctx context.Context, lead func(context.Context)) { lead(ctx) }
func (l *log) Ready(context.Context) error                            { return nil }
func (l *log) Allows(kind command.Kind) bool                          { return kind.Since() <= l.version }
func (l *log) Version() int                                           { return l.version }

// deps are those of a server that is alone.
func deps(t *testing.T) Deps {
	t.Helper()
	state, discard := store.New(), slog.New(slog.DiscardHandler)
	alone := servers.Alone(servers.Config{Self: members.Self{ID: "local"}}, servers.Deps{Store: state, Clock: clock.Wall{}, Logger: discard})
	t.Cleanup(alone.Close)
	return Deps{Store: state, Log: &log{command.Newest}, Servers: alone, Clock: clock.Wall{}, Logger: discard, DataDir: t.TempDir()}
}

// What the configuration has wrong is said with its key.
func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*config.Exec){
		`exec.network_mode "cni/x": want bridge or host`: func(c *config.Exec) { c.NetworkMode = "cni/x" },
		"exec.webhook_allow: ":                           func(c *config.Exec) { c.WebhookAllow = []string{"10.0.0.0/99"} },
	} {
		cfg := config.Default()
		change(cfg.Exec)
		_, err := Open(cfg, deps(t))
		require.Equal(t, drover.Invalid, drover.CodeOf(err), want)
		require.ErrorContains(t, err, want)
	}
}

// What the configuration can say of an environment is said by fields of the noun's names, and all of it is carried over.
func TestConfiguredEnvironmentsAreWhole(t *testing.T) {
	t.Parallel()
	said := config.EnvSetting{ID: "a", Image: "host", Driver: "docker", PoolSize: 2, CPU: 3, MemoryMB: 4, Network: new(true)}
	made := reflect.ValueOf(configured(&said))
	for f, v := range reflect.ValueOf(said).Fields() {
		require.False(t, v.IsZero(), "%s: give it a value here", f.Name)
		require.Equal(t, reflect.Indirect(v).Interface(), made.FieldByName(f.Name).Interface(), f.Name)
	}
}

// A process that is to forget everything keeps no file, another one keeps them in its folder.
func TestWhereFilesAreKept(t *testing.T) {
	t.Parallel()
	d := deps(t)
	require.Equal(t, filepath.Join(d.DataDir, "claims.journal"), (&Plane{deps: d}).file("claims.journal"))
	d.Forgetful = true
	require.Empty(t, (&Plane{deps: d}).file("claims.journal"))
}

// A configured environment is tried again each second while it cannot be written, and one that is wrong ends the agent.
func TestConfiguredEnvironmentsAreMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Plane{
			cfg:  &config.Exec{Environments: []*config.EnvSetting{{ID: "a", Image: "host", PoolSize: 2}, {ID: "b", Network: new(true)}}},
			deps: deps(t),
		}
		tries := 0
		var made []execution.Environment
		put := func(_ context.Context, env execution.Environment) (bool, error) {
			if tries++; tries <= 2 {
				return false, drover.Errorf(drover.NotLeader, "nobody leads")
			}
			made = append(made, env)
			return true, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.makeEnvironments(ctx, put) }() // ends with ctx
		time.Sleep(5 * time.Second)                          // of the bubble
		synctest.Wait()
		require.Equal(t, []execution.Environment{{ID: "a", Image: "host", PoolSize: 2}, {ID: "b", Network: true}}, made)
		cancel()
		require.NoError(t, <-done)
		require.Equal(t, 4, tries)

		err := p.makeEnvironments(t.Context(), func(context.Context, execution.Environment) (bool, error) {
			return false, drover.Errorf(drover.Invalid, "image: is missing")
		})
		require.EqualError(t, err, "image: is missing")
	})
}

// Of an environment's image that is a path only the disk of this process's own node can tell.
func TestEnvironmentsAreChecked(t *testing.T) {
	t.Parallel()
	d := deps(t)
	p := &Plane{deps: d}
	absent := execution.Environment{Image: filepath.Join(d.DataDir, "absent")}
	require.NoError(t, p.check(t.Context(), absent), "another node may have it")
	p.deps.Local = true
	require.Equal(t, drover.Invalid, drover.CodeOf(p.check(t.Context(), absent)))
	require.NoError(t, p.check(t.Context(), execution.Environment{Image: d.DataDir}))
	require.NoError(t, p.check(t.Context(), execution.Environment{Image: "debian:13"}))

	elsewhere := execution.Environment{Image: "debian:13", Namespace: "team"}
	require.NoError(t, p.check(t.Context(), elsewhere))
	p.deps.Log = &log{inNamespaces - 1}
	require.Equal(t, drover.Unavailable, drover.CodeOf(p.check(t.Context(), elsewhere)))
}

// Unclaimed are the running runners of pools that nobody claimed and that are leased to no incarnation.
func TestRunnersThatAreNobodys(t *testing.T) {
	t.Parallel()
	d := deps(t)
	machine, index := fsm.New(d.Store, nil), uint64(0)
	do := func(c command.Command) any {
		t.Helper()
		data, err := command.Encode(c)
		require.NoError(t, err)
		index++
		result, err := machine.Apply(index, data)
		require.NoError(t, err)
		return result
	}
	job, err := environment.ToJob(environment.Canonicalize(execution.Environment{ID: "e", Image: "host", PoolSize: 3}), environment.Options{})
	require.NoError(t, err)
	job = do(&command.RegisterJob{Job: job}).(*drover.Job)
	other := do(&command.RegisterJob{Job: &drover.Job{
		ID: "service", Namespace: "default", Type: "service", TaskGroups: []*drover.TaskGroup{{Name: "g"}},
	}}).(*drover.Job)
	alloc := func(id string, of *drover.Job) *drover.Allocation {
		return &drover.Allocation{ID: id, Namespace: of.Namespace, JobID: of.ID, NodeID: "n", TaskGroup: of.TaskGroups[0].Name}
	}
	do(&command.ApplyPlans{Plans: []command.PlanCommit{
		{Job: job, Placed: []*drover.Allocation{alloc("warm", job), alloc("claimed", job), alloc("starting", job)}},
		{Job: other, Placed: []*drover.Allocation{alloc("serving", other)}},
	}})
	running := func(id string) exchange.AllocUpdate {
		return exchange.AllocUpdate{ID: id, ClientStatus: drover.AllocClientRunning}
	}
	do(&command.UpdateAllocs{Nodes: []command.NodeUpdates{
		{NodeID: "n", Updates: []exchange.AllocUpdate{running("warm"), running("claimed"), running("serving")}},
	}})
	do(&command.ClaimRunners{Claims: []command.RunnerClaim{{AllocID: "claimed", Claim: drover.Claim{RunnerID: "e-claimed"}}}})
	require.Equal(t, []string{"warm"}, (&Plane{deps: d}).unclaimed())
}

// A plane that is not open yet can ask nobody to withhold what is about to be stopped.
func TestNothingIsStoppedBeforeThereIsAPlane(t *testing.T) {
	t.Parallel()
	_, _, err := (*Plane)(nil).Withhold(t.Context(), []string{"x"})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}
