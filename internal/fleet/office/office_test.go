package office

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
)

// world is a fake state, log and loop of one provider, whose core is driven by hand.
type world struct {
	*Office
	t     *testing.T
	now   time.Time
	core  *pool.Core
	pools map[string]*fleet.Pool
	rows  map[string]*fleet.InstanceRecord
	costs []*fleet.Cost
	work  map[string][]*drover.Allocation // by node
	audit *AuditLog
	// down is what a loop that can't be asked answers, fails what the log does; nil if all is well.
	down, fails error
	refuses     error // what the cloud answers to creates
	problems    map[string]string
	configured  []*fleet.Policy
	before      func() // what happens before pools are applied; may be nil
}

// at is a clock that stands.
type at struct {
	clock.Clock
	w *world
}

func (a at) Now() time.Time { return a.w.now }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC), pools: map[string]*fleet.Pool{}, rows: map[string]*fleet.InstanceRecord{},
		work: map[string][]*drover.Allocation{}, problems: map[string]string{},
	}
	var err error
	w.audit, err = OpenAudit("", at{clock.Wall{}, w})
	require.NoError(t, err)
	w.core = pool.NewCore(w.now, pool.Config{
		Owner: "me", Provider: "cloud", Policies: []*fleet.Policy{policy("p")}, Seed: 1, IDs: id.NewSeeded(1),
		Caps: provider.Capabilities{Batch: 10, Idempotent: true}, Audit: w.audit.Add,
	})
	w.pools["p"] = &fleet.Pool{Name: "p", Policy: policy("p"), Source: fleet.SourceAPI}
	w.Office = New(Deps{
		State: func() State { return w }, Log: w, Loops: w, Audit: w.audit, Clock: at{clock.Wall{}, w},
		Regions: map[string]string{"cloud": "north"}, Server: "s1", Configured: func() ([]*fleet.Policy, error) { return w.configured, nil },
	})
	return w
}

func policy(name string) *fleet.Policy {
	p := &fleet.Policy{
		Name: name, Provider: "cloud", Zones: []string{"a"}, Image: "img", Idle: time.Minute,
		Types: []fleet.InstanceType{{Name: "c.1", Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096}, Price: 0.1}},
	}
	p.Canonicalize()
	return p
}

func (w *world) FleetPool(name string) *fleet.Pool { return w.pools[name] }
func (w *world) FleetPools() iter.Seq[*fleet.Pool] { return sorted(w.pools) }
func (w *world) FleetInstances(string) iter.Seq[*fleet.InstanceRecord] {
	return sorted(w.rows)
}

func (w *world) FleetCosts(from string) iter.Seq[*fleet.Cost] {
	return func(yield func(*fleet.Cost) bool) {
		for _, c := range w.costs {
			if c.Day >= from && !yield(c) {
				return
			}
		}
	}
}

func (w *world) UnfinishedByNode(node string) iter.Seq[*drover.Allocation] {
	return slices.Values(w.work[node])
}

func sorted[T any](m map[string]T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(m[k]) {
				return
			}
		}
	}
}

func (w *world) PutPools(_ context.Context, list []*fleet.Pool) error {
	if w.fails != nil {
		return w.fails
	}
	for _, p := range list {
		w.pools[p.Name] = p
	}
	return nil
}

func (w *world) ApplyPools(ctx context.Context, list []*fleet.Pool, version uint64) error {
	if w.before != nil {
		w.before()
	}
	if now := fleet.PoolsVersion(w.FleetPools()); now != version {
		return drover.Errorf(drover.Conflict, "changed")
	}
	for _, p := range list {
		p.ModifyIndex = version + 1
	}
	return w.PutPools(ctx, list)
}

func (w *world) Recorded(context.Context, string) error {
	if w.fails != nil {
		return w.fails
	}
	u := w.core.TakeUpdate(w.now)
	for k := range u.Changed {
		w.rows[u.Changed[k].ID] = &fleet.InstanceRecord{Durable: u.Changed[k].Durable}
	}
	return nil
}

func (w *world) Each(_ context.Context, do func(string, time.Time, *pool.Core) error) error {
	if w.down != nil {
		return w.down
	}
	return do("cloud", w.now, w.core)
}

func (w *world) Problem(name string) string { return w.problems[name] }

// step lets time pass and has what was decided done: records and creates succeed.
func (w *world) step(d time.Duration) {
	w.now = w.now.Add(d)
	w.core.Decide(w.now)
	for list := w.core.Effects(); len(list) > 0; list = w.core.Effects() {
		for k := range list {
			switch e := &list[k]; e.Kind {
			case pool.EffectRecord:
				w.core.Recorded(w.now, e, nil)
			case pool.EffectList:
				w.core.Listed(w.now, nil, true, nil)
			case pool.EffectCreate:
				if w.refuses != nil {
					w.core.Created(w.now, e.Request, nil, w.refuses)
					continue
				}
				var made []provider.Machine
				for _, in := range e.Request.Intents {
					tags := maps.Clone(e.Request.Tags)
					maps.Copy(tags, in.Tags)
					made = append(made, provider.Machine{ID: "m-" + in.ID, Intent: in.ID, Tags: tags, State: provider.Running, Address: "10.0.0.1"})
				}
				w.core.Created(w.now, e.Request, made, nil)
			default:
			}
		}
	}
}

// want puts work into the demand: n pieces of class j/g, which fill a machine each.
func (w *world) want(n int) {
	w.core.SetDemand("p", []fleet.DemandClass{{
		Name: "j/g", NodePool: "p", Each: drover.Capacity{CPU: 2000, MemoryMB: 100}, Count: n, Priority: 50, Since: w.now.Add(-time.Minute),
	}})
}

// machine buys one and returns it, booting.
func (w *world) machine() fleet.Instance {
	w.t.Helper()
	w.step(time.Minute)
	w.want(1)
	w.step(time.Minute)
	list := w.core.Instances("p")
	require.Len(w.t, list, 1)
	return list[0]
}

func (w *world) history() string {
	var out []string
	for _, e := range w.audit.List(func(*fleet.Audit) bool { return true }, 1000) {
		out = append(out, e.What+" by "+e.Why)
	}
	return strings.Join(out, ", ")
}

func requireCode(t *testing.T, want drover.Code, err error, text string) {
	t.Helper()
	require.Equal(t, want, drover.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, text)
}
