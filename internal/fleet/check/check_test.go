package check_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/check"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var offering = fleet.Offering{ // a constant
	Key: fleet.OfferingKey("sim", "c", "a", fleet.MarketOnDemand), Provider: "sim", Type: "c", Zone: "a", Market: fleet.MarketOnDemand,
	Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096}, Price: 0.1, QuotaGroup: "c", QuotaUnits: 1,
}

func node(memory int64) *drover.Node {
	r := &drover.NodeResources{}
	r.Cpu.CpuShares, r.Memory.MemoryMB = 2000, memory
	return &drover.Node{Name: "n1", NodeResources: r, Drivers: map[string]*drover.DriverInfo{"raw_exec": {Detected: true, Healthy: true}}}
}

// bed is a simulated cloud and a check that fits it.
type bed struct {
	*sim.Provider
	cfg   check.Config
	deps  check.Deps
	steps []fleet.CheckStep
	fail  map[string]error // by call: instead of the cloud's answer
}

func newBed(change func(*sim.Config)) *bed {
	cfg := sim.Config{
		Owner: "check", Offerings: []fleet.Offering{offering}, Latency: 200 * time.Millisecond, Boot: 20 * time.Second,
		Caps: provider.Capabilities{Idempotent: true, Batch: 1, Visible: 10 * time.Second},
	}
	if change != nil {
		change(&cfg)
	}
	b := &bed{Provider: sim.New(cfg, clock.Wall{}), fail: map[string]error{}}
	b.cfg = check.Config{
		ProviderName: "sim", Policy: &fleet.Policy{Name: "web", Image: "image"}, Offering: offering, Owner: "check", Intent: "one",
		Within: 5 * time.Minute,
	}
	b.deps = check.Deps{Provider: b, Clock: clock.Wall{}, Home: func(ctx context.Context) (*drover.Node, error) {
		if !clock.Sleep(ctx, clock.Wall{}, 5*time.Second) {
			return nil, drover.Errorf(drover.Unavailable, "nobody called")
		}
		return node(4000), nil
	}}
	return b
}

// List has no time at which machines run: the simulated cloud tells of that by Advance only.
func (b *bed) List(ctx context.Context, page string) ([]provider.Machine, string, error) {
	if err := b.fail["list"]; err != nil {
		return nil, "", err
	}
	return b.Provider.List(ctx, page)
}

func (b *bed) Create(ctx context.Context, r provider.Request) ([]provider.Machine, error) {
	if err := b.fail["create"]; err != nil {
		return nil, err
	}
	return b.Provider.Create(ctx, r)
}

func (b *bed) Destroy(ctx context.Context, id string) error {
	if err := b.fail["destroy"]; err != nil {
		return err
	}
	return b.Provider.Destroy(ctx, id)
}

// Console implements provider.Consoler.
func (b *bed) Console(context.Context, string) ([]byte, error) {
	return []byte("Linux\npanic: no root\n"), nil
}

func (b *bed) run(ctx context.Context) error {
	return check.Run(ctx, b.cfg, b.deps, func(s fleet.CheckStep) { b.steps = append(b.steps, s) })
}

// told is the steps' names, with ! at one that failed.
func (b *bed) told() string {
	var names []string
	for _, s := range b.steps {
		if s.Error != "" {
			s.Name += "!"
		}
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func (b *bed) alive() (n int) {
	b.With(func(_ time.Time, c *sim.Cloud) { n, _ = c.Running() })
	return n
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

const all = "reach create list boot home tag destroy"

func TestCheck(t *testing.T) {
	t.Parallel()
	bubble(t, "a provider that works", func(t *testing.T) {
		b := newBed(nil)
		require.NoError(t, b.run(t.Context()))
		require.Equal(t, all, b.told())
		require.Contains(t, b.steps[4].Says, "raw_exec")
		require.NotContains(t, b.steps[4].Says, "ATTENTION")
		require.Greater(t, b.steps[3].Took, 10*time.Second)
		require.Zero(t, b.alive())
	})
	bubble(t, "a machine that is smaller than its type", func(t *testing.T) {
		b := newBed(nil)
		b.deps.Home = func(context.Context) (*drover.Node, error) { return node(2000), nil }
		require.NoError(t, b.run(t.Context()))
		require.Contains(t, b.steps[4].Says, "promises 4096 of memory")
	})
	bubble(t, "answers that are lost and calls that fail", func(t *testing.T) {
		b := newBed(func(c *sim.Config) { c.Lost, c.Errors, c.Seed = 0.2, 0.1, 3 })
		require.NoError(t, b.run(t.Context()))
		require.Zero(t, b.alive())
	})
	bubble(t, "without idempotent creates", func(t *testing.T) {
		b := newBed(func(c *sim.Config) { c.Lost, c.Caps.Idempotent = 0.3, false })
		require.NoError(t, b.run(t.Context()))
		require.Zero(t, b.alive())
	})
	bubble(t, "what an earlier check left", func(t *testing.T) {
		b := newBed(nil)
		b.cfg.Keep = true
		require.NoError(t, b.run(t.Context()))
		require.Equal(t, 1, b.alive())
		b.cfg.Keep, b.cfg.Intent, b.steps = false, "two", nil
		require.NoError(t, b.run(t.Context()))
		require.Contains(t, b.steps[0].Says, "1 machines that an earlier check left")
		require.Zero(t, b.alive())
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call string
		err  provider.Error
		want string
		says string
		code drover.Code
	}{
		"wrong credentials": {
			"list",
			provider.Error{Kind: provider.Auth, Message: "AuthFailure"},
			"reach!",
			"fleet.provider.sim: the credentials", drover.Forbidden,
		},
		"unreachable": {"list", provider.Error{Kind: provider.Transient, Message: "no route"}, "reach!", "endpoint", drover.Unavailable},
		"a bad request": {
			"create",
			provider.Error{Kind: provider.Config, Message: "InvalidAMIID"},
			"reach create!", "fleet.pool.web",
			drover.Invalid,
		},
		"quota": {"create", provider.Error{Kind: provider.Quota, Group: "c"}, "reach create!", "ask the provider", drover.Exhausted},
		"capacity": {
			"create",
			provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering},
			"reach create!", "-zone",
			drover.Exhausted,
		},
	} {
		bubble(t, name, func(t *testing.T) {
			b := newBed(nil)
			b.fail[c.call] = &c.err
			err := b.run(t.Context())
			require.Equal(t, c.want, b.told())
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, c.err.Message)
			require.Equal(t, c.code, drover.CodeOf(err))
		})
	}
}

func TestFailuresOfTheMachine(t *testing.T) {
	t.Parallel()
	bubble(t, "a machine that does not boot", func(t *testing.T) {
		b := newBed(func(c *sim.Config) { c.BootFails = 1 })
		err := b.run(t.Context())
		require.Equal(t, "reach create list boot! destroy", b.told())
		require.ErrorContains(t, err, "panic: no root", "its console tells why")
		require.Zero(t, b.alive())
	})
	bubble(t, "an agent that does not call", func(t *testing.T) {
		b := newBed(nil)
		b.deps.Home = func(ctx context.Context) (*drover.Node, error) {
			<-ctx.Done()
			return nil, drover.Errorf(drover.Unavailable, "nobody called at x:1")
		}
		err := b.run(t.Context())
		require.Equal(t, "reach create list boot home! destroy", b.told())
		require.ErrorContains(t, err, "x:1")
		require.Zero(t, b.alive())
	})
	bubble(t, "a machine that ends while it is awaited", func(t *testing.T) {
		b := newBed(nil)
		b.deps.Home = func(ctx context.Context) (*drover.Node, error) {
			list, _, err := b.List(ctx, "")
			require.NoError(t, err)
			require.NoError(t, b.Destroy(ctx, list[0].ID))
			<-ctx.Done()
			return nil, ctx.Err()
		}
		require.ErrorContains(t, b.run(t.Context()), "ended before")
	})
	bubble(t, "Ctrl-C", func(t *testing.T) {
		b := newBed(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // while it boots
		defer cancel()
		require.Error(t, b.run(ctx))
		require.Equal(t, "reach create list boot! destroy", b.told())
		require.Zero(t, b.alive())
	})
	bubble(t, "a machine that can't be destroyed", func(t *testing.T) {
		b := newBed(nil)
		b.fail["destroy"] = &provider.Error{Kind: provider.Auth, Message: "UnauthorizedOperation"}
		require.ErrorContains(t, b.run(t.Context()), "MAY STILL RUN AND COST")
	})
}

// Over ssh, its steps are told among the others.
func TestSSH(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		b.deps.Bootstrap = func(_ context.Context, _ provider.Machine, report func(fleet.CheckStep)) error {
			report(fleet.CheckStep{Name: "ssh: upload"})
			return nil
		}
		b.deps.Provider = addressed{b}
		require.NoError(t, b.run(t.Context()))
		require.Equal(t, strings.Replace(all, "boot", "ssh: upload boot", 1), b.told())
	})
}

// addressed gives machines addresses.
type addressed struct{ *bed }

func (a addressed) List(ctx context.Context, page string) ([]provider.Machine, string, error) {
	list, next, err := a.bed.List(ctx, page)
	for i := range list {
		list[i].Address = "10.0.0.1"
	}
	return list, next, err
}
