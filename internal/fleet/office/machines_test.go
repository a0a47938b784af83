package office

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
)

func TestAMachineIsFoundByItsNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.machine()
	for _, name := range []string{i.ID, i.ID[:4], i.ProviderID} {
		x, err := w.Explain(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, i.ID, x.Instance.ID)
	}
	_, err := w.Explain(t.Context(), i.ID[:3])
	requireCode(t, drover.NotFound, err, "no instance")
	_, err = w.Explain(t.Context(), "")
	requireCode(t, drover.Invalid, err, "instance: must be set")
	list, err := w.Instances(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, list, 1)
	list, err = w.Instances(t.Context(), "other")
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestAPrefixMayMeanSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.step(time.Minute)
	w.core.Restore(w.now, []fleet.Durable{
		{ID: "abcd-1", Pool: "p", PlannedAt: w.now, ProviderID: "m1"}, {ID: "abcd-2", Pool: "p", PlannedAt: w.now, ProviderID: "m2"},
	})
	requireCode(t, drover.Invalid, w.Kill(t.Context(), "abcd", ""), `"abcd" may be any of 2 instances`)
}

// What an operator wants is recorded before the answer, so that a restarted server knows of it.
func TestWhatOperatorsWantIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.machine()
	require.NoError(t, w.Behave(t.Context(), i.ID, fleet.BehaviorHold, ""))
	require.Equal(t, fleet.BehaviorHold, w.rows[i.ID].Behavior)
	requireCode(t, drover.Invalid, w.Behave(t.Context(), i.ID, "dance", ""), "dance")
	require.NoError(t, w.Interrupt(t.Context(), i.ID, time.Time{}))
	after, _ := w.core.Instance(i.ID)
	require.Equal(t, w.now.Add(2*time.Minute), after.InterruptAt, "as clouds mostly give")
	require.NoError(t, w.Kill(t.Context(), i.ID, "it is hot"))
	require.Equal(t, fleet.InstanceDestroying, w.rows[i.ID].State)
	require.Contains(t, w.rows[i.ID].Reason, "it is hot")
	requireCode(t, drover.NotFound, w.Kill(t.Context(), "i-none", ""), "no instance")
	w.fails = drover.Errorf(drover.Unavailable, "no quorum")
	requireCode(t, drover.Unavailable, w.Kill(t.Context(), i.ID, ""), "no quorum")
}

func TestWhyAMachineIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.machine()
	text := func() string {
		x, err := w.Explain(t.Context(), i.ID)
		require.NoError(t, err)
		return strings.Join(x.Text, "\n")
	}
	require.Contains(t, text(), "It is booting for 0s: ")
	require.Contains(t, text(), "It was bought at 2027-01-15T08:02:00Z: ")
	require.Contains(t, text(), "Machines of c.1 take ")
	require.Contains(t, text(), "It costs 0.10 an hour, 0")

	require.NoError(t, w.core.Registered(w.now, i.ID, "n1"))
	w.core.Reported(w.now, "n1", pool.Report{Ready: true, Work: 2, Total: drover.Capacity{CPU: 2000, MemoryMB: 4096}})
	w.work["n1"] = []*drover.Allocation{
		{Namespace: "default", JobID: "j"},
		{Namespace: "default", JobID: "j"},
		{Namespace: "default", JobID: "k"},
	}
	x, err := w.Explain(t.Context(), i.ID)
	require.NoError(t, err)
	require.Equal(t, []drover.NamespacedID{{Namespace: "default", ID: "j"}, {Namespace: "default", ID: "k"}}, x.Jobs)
	require.Contains(t, text(), "2 pieces of work run on it: it is not destroyed while they do, but by a person or the cloud.")
	require.NotEmpty(t, x.History)

	w.core.SetDemand("p", nil)
	w.core.Reported(w.now, "n1", pool.Report{Ready: true, Total: drover.Capacity{CPU: 2000, MemoryMB: 4096}})
	require.NoError(t, w.Behave(t.Context(), i.ID, fleet.BehaviorHold, ""))
	require.Contains(t, text(), "It has no work since 08:02:00.")
	require.Contains(t, text(), "An operator holds it: it takes no new work and is never destroyed by the fleet.")
	require.NoError(t, w.Behave(t.Context(), i.ID, fleet.BehaviorDrain, ""))
	require.Contains(t, text(), "It takes no new work and goes as soon as it is idle.")
	w.core.Interrupted(w.now, i.ID, w.now.Add(time.Minute))
	require.Contains(t, text(), "The cloud takes it back at 2027-01-15T08:03:00Z.")
	w.core.Lost(w.now, "n1", 0)
	require.Contains(t, text(), "Its agent is silent since 2027-01-15T08:02:00Z.")
}

func TestAMachineThatIsGoneIsStillExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rows["abcd-1"] = &fleet.InstanceRecord{
		Durable: fleet.Durable{
			ID: "abcd-1", ProviderID: "m1", Pool: "p", State: fleet.InstanceGone, GoneAt: w.now, Reason: "it was idle", Charged: 2,
			Bought:    "work waited",
			PlannedAt: w.now.Add(-time.Hour), LastError: "no route",
		},
	}
	for _, name := range []string{"abcd-1", "abcd", "m1"} {
		x, err := w.Explain(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, []string{
			"It is gone since 2027-01-15T08:00:00Z: it was idle. It cost 2.00.", "It was bought at 2027-01-15T07:00:00Z: work waited.",
			"What went wrong last: no route",
		}, x.Text)
		require.Equal(t, "abcd-1", x.Instance.ID)
	}
	w.rows["abcd-1"].State = fleet.InstanceActive // the log is about to hear that it went
	x, err := w.Explain(t.Context(), "abcd-1")
	require.NoError(t, err)
	require.Equal(t, fleet.InstanceGone, x.Instance.State)
	require.Contains(t, x.Text[0], "it went just now")
	require.Equal(t, fleet.InstanceActive, w.rows["abcd-1"].State, "what is stored is never changed in place")
}

func TestAPlanSaysWhatWouldHappenAndWhyNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	note := func(change func(*fleet.Policy)) string {
		p := policy("p")
		change(p)
		w.core.SetPolicies(w.now, []*fleet.Policy{p})
		plans, err := w.Plan(t.Context(), "p")
		require.NoError(t, err)
		require.Len(t, plans, 1)
		return plans[0].Note
	}
	same := func(*fleet.Policy) {}
	require.Equal(t, "the cloud's machines were not listed yet: nothing is decided before", note(same))
	require.Equal(t, "creates and destroys are paused", note(func(p *fleet.Policy) { p.PauseCreates, p.PauseDestroys = true, true }))
	require.Equal(t, "creates are paused", note(func(p *fleet.Policy) { p.PauseCreates = true }))
	require.Equal(t, "destroys are paused", note(func(p *fleet.Policy) { p.PauseDestroys = true }))
	w.step(time.Second)
	require.Contains(t, note(same), "nothing is destroyed before")
	w.step(time.Hour)
	require.Empty(t, note(same))
	const lacks = "1 of the 1 machines that are kept at least are missing: cloud/c.1/a/on-demand: the pool's limits have no room for one"
	small := func(p *fleet.Policy) { p.Min, p.Limits.CPU = 1, 1 }
	require.Equal(t, lacks, note(small))
	p := policy("p")
	small(p)
	w.pools["p"] = &fleet.Pool{Name: "p", Policy: p}
	w.step(time.Second)
	st, err := w.Pool(t.Context(), "p")
	require.NoError(t, err)
	require.Equal(t, lacks, st.Lacks)
	require.Empty(t, note(same))

	w.want(2)
	plans, err := w.Plan(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, plans[0].Actions, 2)
	a := plans[0].Actions[0]
	require.Equal(t, fleet.Action{Kind: "create", Offering: "cloud/c.1/a/on-demand", Count: 1, PerHour: 0.1, Why: a.Why, Reason: a.Reason}, a)
	require.NotEmpty(t, a.Reason)
	require.Empty(t, w.core.Instances("p"), "nothing is done")

	_, err = w.Plan(t.Context(), "x")
	requireCode(t, drover.NotFound, err, `no pool "x"`)
	w.pools["x"] = &fleet.Pool{Name: "x", Policy: policy("x")}
	w.problems["cloud"] = "no credentials"
	_, err = w.Plan(t.Context(), "x")
	requireCode(t, drover.Unavailable, err, `pool "x": no credentials`)
}

func TestWaitingWorkStandsInLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.step(time.Minute)
	class := func(name string, priority int, since time.Duration) fleet.DemandClass {
		return fleet.DemandClass{
			Name: name, NodePool: "p", Each: drover.Capacity{CPU: 1000}, Count: 1, Priority: priority,
			Since: w.now.Add(-since),
		}
	}
	w.core.SetDemand("p", []fleet.DemandClass{
		class("late/g", 50, time.Minute), class("b/g", 50, time.Hour), class("a/g", 50, time.Hour), class("urgent/g", 90, time.Second),
	})
	list, err := w.Waiting(t.Context(), "p")
	require.NoError(t, err)
	var names []string
	for n, x := range list {
		names = append(names, x.Class)
		require.Equal(t, n+1, x.Position)
		require.Equal(t, 4, x.Of)
	}
	require.Equal(t, []string{"urgent/g", "a/g", "b/g", "late/g"}, names)
	w.down = drover.Errorf(drover.NotLeader, "not here")
	_, err = w.Waiting(t.Context(), "")
	requireCode(t, drover.NotLeader, err, "not here")
}

func TestCostsBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.costs = []*fleet.Cost{
		{Day: "2027-01-14", Pool: "p", Namespace: "default", Job: "j", Cost: 1, Hours: 2},
		{Day: "2027-01-15", Pool: "p", Namespace: "default", Job: "j", Cost: 2, Hours: 3},
		{Day: "2027-01-15", Pool: "q", Job: fleet.IdleJob, Cost: 4, Hours: 5},
	}
	w.rows["i1"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i1", Pool: "p", Charged: 3, CreatedAt: w.now.Add(-2 * time.Hour)}}
	w.rows["i2"] = &fleet.InstanceRecord{
		Durable: fleet.Durable{
			ID: "i2", Pool: "q", Charged: 5, State: fleet.InstanceGone, CreatedAt: w.now.Add(-30 * time.Hour), GoneAt: w.now.Add(-29 * time.Hour),
		},
	}
	w.rows["i3"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i3", Pool: "q"}} // it was never made
	for _, c := range []struct {
		from, by string
		total    float64
		lines    []fleet.CostLine
	}{
		{"", "", 7, []fleet.CostLine{{Key: "q", Pool: "q", Cost: 4, Hours: 5}, {Key: "p", Pool: "p", Cost: 3, Hours: 5}}},
		{"2027-01-15", "pool", 6, []fleet.CostLine{{Key: "q", Pool: "q", Cost: 4, Hours: 5}, {Key: "p", Pool: "p", Cost: 2, Hours: 3}}},
		{"", "job", 7, []fleet.CostLine{{Key: "idle", Pool: "q", Cost: 4, Hours: 5}, {Key: "default/j", Pool: "p", Cost: 3, Hours: 5}}},
		{"", "namespace", 7, []fleet.CostLine{{Key: "idle", Pool: "q", Cost: 4, Hours: 5}, {Key: "default", Pool: "p", Cost: 3, Hours: 5}}},
		{"", "day", 7, []fleet.CostLine{
			{Key: "2027-01-14", Pool: "p", Cost: 1, Hours: 2},
			{Key: "2027-01-15", Pool: "p", Cost: 2, Hours: 3},
			{Key: "2027-01-15", Pool: "q", Cost: 4, Hours: 5},
		}},
		{"", "day,job", 7, []fleet.CostLine{
			{Key: "2027-01-14", Of: "default/j", Pool: "p", Cost: 1, Hours: 2},
			{Key: "2027-01-15", Of: "idle", Pool: "q", Cost: 4, Hours: 5},
			{Key: "2027-01-15", Of: "default/j", Pool: "p", Cost: 2, Hours: 3},
		}},
		{"", "namespace,pool", 7, []fleet.CostLine{
			{Key: "idle", Of: "q", Pool: "q", Cost: 4, Hours: 5}, {Key: "default", Of: "p", Pool: "p", Cost: 3, Hours: 5},
		}},
		{"", "machine", 8, []fleet.CostLine{{Key: "i2", Pool: "q", Cost: 5, Hours: 1, Gone: true}, {Key: "i1", Pool: "p", Cost: 3, Hours: 2}}},
		{"2027-01-15", "machine", 3, []fleet.CostLine{{Key: "i1", Pool: "p", Cost: 3, Hours: 2}}},
		{"2028-01-01", "pool", 0, []fleet.CostLine{}},
	} {
		r, err := w.Costs(t.Context(), c.from, c.by)
		require.NoError(t, err)
		require.InDelta(t, c.total, r.Total, 0.001, c.by)
		require.Equal(t, c.lines, r.Lines, c.by)
	}
	_, err := w.Costs(t.Context(), "yesterday", "")
	requireCode(t, drover.Invalid, err, "from: must be a day such as 2026-01-31")
	for _, by := range []string{"moon", "day,moon", "day,day", "day,machine", "machine,day", "day,job,pool", "day,", ","} {
		_, err = w.Costs(t.Context(), "", by)
		requireCode(t, drover.Invalid, err, "by: must be day, pool, job, namespace or machine, or two of the first four")
	}
}
