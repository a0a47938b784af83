package pool_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
)

// hands drives a core by hand: what would be done outside is in effects, what the core tells in audit.
type hands struct {
	*pool.Core
	now   time.Time
	audit []fleet.Audit
}

func newHands(t *testing.T, change ...func(*pool.Config)) *hands {
	t.Helper()
	h := &hands{now: time.Unix(1_800_000_000, 0).UTC()}
	cfg := pool.Config{
		Owner: "me", Provider: "cloud", Policies: []*fleet.Policy{policy()}, Seed: 1, IDs: id.NewSeeded(1),
		Caps: provider.Capabilities{Batch: 10, Idempotent: true}, Audit: func(e fleet.Audit) { h.audit = append(h.audit, e) },
	}
	for _, f := range change {
		f(&cfg)
	}
	h.Core = pool.NewCore(h.now, cfg)
	h.step(time.Minute)
	h.Listed(h.now, nil, true, nil)
	h.step(time.Minute)
	return h
}

// step lets time pass and returns what is to be done; records succeed.
func (h *hands) step(d time.Duration) (out []pool.Effect) {
	h.now = h.now.Add(d)
	h.Decide(h.now)
	for list := h.Effects(); len(list) > 0; list = h.Effects() {
		for k := range list {
			if list[k].Kind == pool.EffectRecord {
				h.Recorded(h.now, &list[k], nil)
			} else {
				out = append(out, list[k])
			}
		}
	}
	return out
}

func (h *hands) find(kind pool.EffectKind, list []pool.Effect) *pool.Effect {
	for k := range list {
		if list[k].Kind == kind {
			return &list[k]
		}
	}
	return nil
}

func (h *hands) told(what string) (list []fleet.Audit) {
	for _, e := range h.audit {
		if e.What == what {
			list = append(list, e)
		}
	}
	return list
}

func listed(req *provider.Request, n int) provider.Machine {
	tags := maps.Clone(req.Tags)
	maps.Copy(tags, req.Intents[n].Tags)
	return provider.Machine{ID: fmt.Sprintf("m%d", n), Intent: req.Intents[n].ID, Tags: tags, State: provider.Running}
}

// TestWhatACloudAnswersIsTold: a create that was not answered, whose machines a list shows meanwhile, leaves its reason
// with each of them, with the pool and in the audit log.
func TestWhatACloudAnswersIsTold(t *testing.T) {
	t.Parallel()
	h := newHands(t)
	h.SetDemand("p", work(2))
	create := h.find(pool.EffectCreate, h.step(time.Second))
	require.NotNil(t, create)
	for _, line := range h.told("create") {
		require.Equal(t, line.Count, len(line.Several)+min(len(line.Instance), 1), "a line names its machines")
	}
	h.Listed(h.now, []provider.Machine{listed(create.Request, 0)}, true, nil)
	err := &provider.Error{Kind: provider.Ambiguous, Message: "could not find bridge docker0"}
	h.Created(h.now, create.Request, nil, err)
	h.Created(h.now, create.Request, nil, err)
	failed := h.told(pool.CreateFails)
	require.Len(t, failed, 1, "the same answer once a minute")
	require.Contains(t, failed[0].Reason, "bridge docker0")
	require.Equal(t, "cloud", failed[0].Provider)
	for _, in := range create.Request.Intents {
		i, _ := h.Instance(in.ID)
		require.Contains(t, i.LastError, "its create: ", i.State)
		require.NotEmpty(t, i.Bought)
	}
	require.Contains(t, h.Failed(h.now.Add(12*time.Second), "p"), "a create failed 12s ago: ")
	require.Empty(t, h.Failed(h.now.Add(time.Hour), "p"))
}

// TestABootThatFailedLeavesEvidence: what the machine wrote is read before it goes.
func TestABootThatFailedLeavesEvidence(t *testing.T) {
	t.Parallel()
	h := newHands(t)
	h.SetDemand("p", work(1))
	create := h.find(pool.EffectCreate, h.step(time.Second))
	h.Created(h.now, create.Request, []provider.Machine{listed(create.Request, 0)}, nil)
	destroy := h.find(pool.EffectDestroy, h.step(16*time.Minute))
	require.NotNil(t, destroy)
	require.True(t, destroy.Console)
	h.Wrote(h.now, destroy.Instance, []byte(strings.Repeat("x", 5000)+"\nboot probe: exit status 1: no such disk\n"), nil)
	evidence := h.told("console")
	require.Len(t, evidence, 1)
	require.Contains(t, evidence[0].Reason, "boot probe: exit status 1: no such disk")
	require.LessOrEqual(t, len(evidence[0].Reason), 2<<10)
	i, ok := h.Instance(destroy.Instance)
	require.True(t, ok)
	require.Contains(t, i.LastError, "it did not boot; ")
}

// TestARestartForgetsNothingOfAMachine: since when it is ready and idle, why it was bought, and nothing is told twice.
func TestARestartForgetsNothingOfAMachine(t *testing.T) {
	t.Parallel()
	h := newHands(t)
	h.SetDemand("p", work(1))
	create := h.find(pool.EffectCreate, h.step(time.Second))
	m := listed(create.Request, 0)
	h.Created(h.now, create.Request, []provider.Machine{m}, nil)
	require.NoError(t, h.Registered(h.now, m.Intent, "node"))
	h.SetDemand("p", nil)
	h.Reported(h.now, "node", pool.Report{Ready: true})
	require.Len(t, h.told("active"), 1)
	before, _ := h.Instance(m.Intent)

	again := newHands(t)
	again.now = h.now.Add(20 * time.Second)
	again.Restore(again.now, []fleet.Durable{before.Durable})
	again.Listed(again.now, []provider.Machine{m}, true, nil)
	require.NoError(t, again.Registered(again.now, m.Intent, "node"))
	again.Reported(again.now, "node", pool.Report{Ready: true})
	after, _ := again.Instance(m.Intent)
	require.Equal(t, fleet.InstanceActive, after.State)
	require.Equal(t, before.ReadyAt, after.ReadyAt)
	require.Equal(t, before.IdleAt, after.IdleAt)
	require.Equal(t, before.Bought, after.Bought)
	require.Empty(t, again.told("active"), "it was told before the restart")
}

// TestAMachineThatIsGoneLeavesItsPlace: where the cloud answers when it is gone, no list is waited for.
func TestAMachineThatIsGoneLeavesItsPlace(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		h := newHands(t, func(c *pool.Config) { c.Caps.Waits = waits })
		h.SetDemand("p", work(1))
		create := h.find(pool.EffectCreate, h.step(time.Second))
		h.Created(h.now, create.Request, []provider.Machine{listed(create.Request, 0)}, nil)
		require.NoError(t, h.Kill(h.now, create.Request.Intents[0].ID, "test"))
		destroy := h.find(pool.EffectDestroy, h.Effects())
		h.Destroyed(h.now, destroy.Instance, nil)
		_, there := h.Instance(destroy.Instance)
		require.Equal(t, !waits, there)
	}
}

// TestASchedulesMachinesAreThereInTime: they are bought as much earlier as they take to boot.
func TestASchedulesMachinesAreThereInTime(t *testing.T) {
	t.Parallel()
	p := policy()
	p.Schedule = []fleet.Schedule{{Cron: "0 9 * * *", Duration: time.Hour, Min: 2}}
	h := newHands(t, func(c *pool.Config) { c.Policies = []*fleet.Policy{p} })
	nine := time.Date(2027, 1, 15, 9, 0, 0, 0, time.UTC)
	require.True(t, h.now.Before(nine))
	require.Nil(t, h.find(pool.EffectCreate, h.step(nine.Add(-2*time.Minute).Sub(h.now))))
	create := h.find(pool.EffectCreate, h.step(time.Minute))
	require.NotNil(t, create, "a minute before, as a boot may take 90 s")
	require.Equal(t, "minimum", h.told("create")[0].Why)
}
