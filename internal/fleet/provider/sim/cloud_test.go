package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

var start = time.Unix(1_795_392_000, 0)

// world is a cloud with what a test asks of it.
type world struct {
	*sim.Cloud
	t *testing.T
}

func cloud(t *testing.T, cfg sim.Config) *world {
	cfg.Owner = "me"
	if cfg.Offerings == nil {
		cfg.Offerings = []fleet.Offering{offering("c")}
	}
	return &world{sim.NewCloud(cfg), t}
}

func request(o fleet.Offering, intents ...string) *provider.Request {
	req := &provider.Request{Offering: o, Tags: map[string]string{fleet.TagOwner: "me"}}
	for _, id := range intents {
		req.Intents = append(req.Intents, provider.Intent{ID: id, Tags: map[string]string{fleet.TagIntent: id}})
	}
	return req
}

func (w *world) make(now time.Time, intents ...string) []provider.Machine {
	made, _, err := w.Create(now, request(offering("c"), intents...))
	require.NoError(w.t, err)
	require.Len(w.t, made, len(intents))
	return made
}

// listed returns the states of the machines in all pages, by intent.
func (w *world) listed(now time.Time) map[string]provider.State {
	got := map[string]provider.State{}
	for page := ""; ; {
		list, next, _, err := w.List(now, page)
		require.NoError(w.t, err)
		for _, m := range list {
			got[m.Intent] = m.State
		}
		if page = next; page == "" {
			return got
		}
	}
}

func TestAMachineBootsAfterItsTime(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{Boot: time.Minute, BootWide: 1e-9})
	m := w.make(start, "a")[0]
	require.Equal(t, provider.Pending, m.State)
	require.WithinDuration(t, start.Add(time.Minute), w.Next(), time.Millisecond)
	require.Empty(t, w.Advance(start.Add(59*time.Second)))
	happened := w.Advance(start.Add(61 * time.Second))
	require.Len(t, happened, 1)
	require.Equal(t, "booted", happened[0].Kind)
	require.Equal(t, m.ID, happened[0].ID)
	require.Equal(t, map[string]provider.State{"a": provider.Running}, w.listed(start.Add(61*time.Second)))
	require.True(t, w.Next().IsZero())
}

func TestMachinesOfOthersAreNotListed(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{})
	w.make(start, "a")
	foreign := request(offering("c"), "b")
	foreign.Tags[fleet.TagOwner] = "somebody"
	_, _, err := w.Create(start, foreign)
	require.NoError(t, err)
	require.Equal(t, map[string]provider.State{"a": provider.Pending}, w.listed(start))
	n, perHour := w.Running()
	require.Equal(t, 2, n)
	require.InDelta(t, 0.2, perHour, 1e-9)
}

func TestListsHavePages(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{PageSize: 3})
	for n := range 8 {
		w.make(start, fmt.Sprint(n))
	}
	list, next, _, err := w.List(start, "")
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.NotEmpty(t, next)
	require.Len(t, w.listed(start), 8)
}

func TestAnEndedMachineStaysInListsForAMinute(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{})
	m := w.make(start, "a")[0]
	_, err := w.Destroy(start, m.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]provider.State{"a": provider.Terminated}, w.listed(start.Add(time.Minute)))
	require.Empty(t, w.listed(start.Add(61*time.Second)))
	_, err = w.Destroy(start, m.ID)
	require.Equal(t, provider.NotFound, provider.KindOf(err))
	_, err = w.SetTags(start, m.ID, map[string]string{"k": "v"})
	require.Equal(t, provider.NotFound, provider.KindOf(err))
	_, alive := w.Size(m.ID)
	require.False(t, alive)
	require.Empty(t, w.Advance(start.Add(time.Hour)), "it never boots")
}

func TestTagsAreAddedAndReplaced(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{})
	m := w.make(start, "a")[0]
	_, err := w.SetTags(start, m.ID, map[string]string{"k": "v", fleet.TagOwner: "me"})
	require.NoError(t, err)
	list, _, _, err := w.List(start, "")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "v", fleet.TagOwner: "me", fleet.TagIntent: "a"}, list[0].Tags)
	require.NotContains(t, m.Tags, "k", "what was told before does not change")
}

func TestQuotasAreByGroup(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{Offerings: []fleet.Offering{offering("c"), offering("m")}, Quotas: map[string]int64{"c": 2}})
	made, _, err := w.Create(start, request(offering("c"), "a", "b", "c"))
	require.Equal(t, provider.Quota, provider.KindOf(err))
	require.Len(t, made, 2, "what there is, and the error")
	_, _, err = w.Create(start, request(offering("m"), "d"))
	require.NoError(t, err)
	require.Equal(t, int64(2), w.Used("c"))
	_, err = w.Destroy(start, made[0].ID)
	require.NoError(t, err)
	w.make(start, "e")
}

func TestAnIntentIsOneMachineWhereTheCloudIsIdempotent(t *testing.T) {
	t.Parallel()
	for idempotent, want := range map[bool]int{true: 1, false: 2} {
		w := cloud(t, sim.Config{Caps: provider.Capabilities{Idempotent: idempotent}})
		w.make(start, "a")
		w.make(start, "a")
		n, _ := w.Running()
		require.Equal(t, want, n)
	}
	_, _, err := cloud(t, sim.Config{}).Create(start, request(offering("unknown"), "a"))
	require.Equal(t, provider.Config, provider.KindOf(err))
}

func TestABatchIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{Caps: provider.Capabilities{Shared: true, Idempotent: true, Batch: 5}, Quotas: map[string]int64{"c": 3}})
	b := provider.Batch{ID: "x", Size: 5}
	made, _, err := w.Create(start, request(offering("c"), b.Intents()...))
	require.Len(t, made, 3)
	require.Equal(t, provider.Capacity, provider.KindOf(err))
	again, _, err := w.Create(start, request(offering("c"), b.Intent(1)))
	require.NoError(t, err, "who asks for one that was made gets all of them")
	require.Equal(t, made, again)
	_, _, err = w.Create(start, request(offering("c"), b.Intent(4)))
	require.Error(t, err, "for good")
}

func TestRatesAreEnforced(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{Caps: provider.Capabilities{
		Rates: map[provider.Call]provider.Rate{provider.CallList: {PerSecond: 2, Burst: 2}, provider.CallCreate: {PerSecond: 100, Burst: 100}},
		Batch: 50, Creates: provider.Rate{PerSecond: 1, Burst: 1},
	}})
	for range 2 {
		_, _, _, err := w.List(start, "")
		require.NoError(t, err)
	}
	_, _, _, err := w.List(start, "")
	var e *provider.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, provider.RateLimited, e.Kind)
	require.Equal(t, start.Add(500*time.Millisecond), e.RetryAt)
	_, _, _, err = w.List(e.RetryAt, "")
	require.NoError(t, err)
	w.make(start, "a", "b")
	_, _, err = w.Create(start, request(offering("c"), "d"))
	require.Equal(t, provider.RateLimited, provider.KindOf(err), "calls have a limit beside machines")
	require.Equal(t, 4, w.Calls[provider.CallList], "refused ones too")
}

func TestOutages(t *testing.T) {
	t.Parallel()
	out := func(mode sim.Mode) *world {
		return cloud(t, sim.Config{Outages: []sim.Outage{{From: start, Until: start.Add(time.Hour), Mode: mode}}})
	}
	fails := out(sim.ModeFails)
	_, _, err := fails.Create(start, request(offering("c"), "a"))
	require.Equal(t, provider.Transient, provider.KindOf(err))
	n, _ := fails.Running()
	require.Zero(t, n, "nothing is done")

	hangs := out(sim.ModeHangs)
	_, took, err := hangs.Create(start, request(offering("c"), "a"))
	require.Equal(t, provider.Ambiguous, provider.KindOf(err))
	require.Equal(t, time.Minute, took)
	n, _ = hangs.Running()
	require.Equal(t, 1, n, "it is done")

	lies := out(sim.ModeLies)
	lies.make(start, "a")
	require.Empty(t, lies.listed(start))
	require.Len(t, lies.listed(start.Add(time.Hour)), 1, "it is over")
}

func TestListsMayBeStaleOrShort(t *testing.T) {
	t.Parallel()
	stale := cloud(t, sim.Config{Stale: time.Hour})
	m := stale.make(start, "a")[0]
	require.Empty(t, stale.listed(start), "it is too new to be seen")
	_, err := stale.Destroy(start.Add(2*time.Hour), m.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]provider.State{"a": provider.Running}, stale.listed(start.Add(2*time.Hour)), "and too early gone")

	omits := cloud(t, sim.Config{Omits: 1})
	omits.make(start, "a")
	require.Empty(t, omits.listed(start), "it says nothing of it")
	_, _, _, err = cloud(t, sim.Config{Partial: 1}).List(start, "")
	require.Equal(t, provider.Transient, provider.KindOf(err))

	hidden := cloud(t, sim.Config{Hidden: 1})
	hidden.make(start, "a")
	for after, want := range map[time.Duration]int{0: 1, 6 * time.Minute: 0, 34 * time.Minute: 0, 35 * time.Minute: 1} {
		require.Len(t, hidden.listed(start.Add(after)), want, after)
	}
}

func TestWhatMachinesSuffer(t *testing.T) {
	t.Parallel()
	zombie := cloud(t, sim.Config{Zombies: 1})
	m := zombie.make(start, "a")[0]
	for _, alive := range []bool{true, false} {
		_, err := zombie.Destroy(start, m.ID)
		require.NoError(t, err)
		_, got := zombie.Size(m.ID)
		require.Equal(t, alive, got, "the first destroy is accepted and not done")
	}
	dead := cloud(t, sim.Config{BootFails: 1})
	dead.make(start, "a")
	require.Empty(t, dead.Advance(start.Add(24*time.Hour)), "its agent never comes")
	dies := cloud(t, sim.Config{Dies: 60})
	dies.make(start, "a")
	kinds := map[string]int{}
	for _, h := range dies.Advance(start.Add(24 * time.Hour)) {
		kinds[h.Kind]++
	}
	require.Equal(t, 1, kinds["died"])
	n, perHour := dies.Running()
	require.Zero(t, n)
	require.InDelta(t, 0, perHour, 1e-9)
}

func TestSpotMachinesAreTakenBackAfterANotice(t *testing.T) {
	t.Parallel()
	o := offering("c")
	o.Market, o.Interrupted = fleet.MarketSpot, 10
	w := cloud(t, sim.Config{Offerings: []fleet.Offering{o}, Interrupts: true, Notice: 5 * time.Minute})
	w.make(start, "a")
	var notice sim.Happening
	for _, h := range w.Advance(start.Add(1000 * time.Hour)) {
		switch h.Kind {
		case "notice":
			notice = h
		case "taken":
			require.Equal(t, notice.Until, h.At)
			require.Equal(t, 5*time.Minute, h.At.Sub(notice.At))
		}
	}
	require.False(t, notice.At.IsZero())
	n, _ := w.Running()
	require.Zero(t, n)
}

func TestSpotPricesWalkByTheHour(t *testing.T) {
	t.Parallel()
	spot := offering("c")
	spot.Key, spot.Market = "sim/c/a/spot", fleet.MarketSpot
	w := cloud(t, sim.Config{Offerings: []fleet.Offering{offering("c"), spot}, PriceStep: 0.1, Seed: 3})
	hour := start.Truncate(time.Hour)
	first, again, next := w.Prices(hour), w.Prices(hour.Add(59*time.Minute)), w.Prices(hour.Add(time.Hour))
	require.Equal(t, first, again)
	require.InDelta(t, 0.1, next[0].Price, 1e-12, "on demand it is what it is")
	require.Greater(t, abs(first[1].Price-next[1].Price), 1e-9)
	for n := range 200 {
		p := w.Prices(hour.Add(time.Duration(n) * time.Hour))[1].Price
		require.True(t, p > 0.05 && p < 0.2, "the walk is bounded: %g", p)
	}
}

func abs(v float64) float64 { return max(v, -v) }

func TestCapacityComesAndGoes(t *testing.T) {
	t.Parallel()
	w := cloud(t, sim.Config{CapacityOn: 30 * time.Minute, CapacityOff: 10 * time.Minute, Seed: 5})
	had := 0
	for n := range 2000 {
		now := start.Add(time.Duration(n) * 10 * time.Minute)
		made, _, err := w.Create(now, request(offering("c"), fmt.Sprint(n)))
		if err == nil {
			had++
			_, err = w.Destroy(now, made[0].ID)
			require.NoError(t, err)
			continue
		}
		require.Equal(t, provider.Capacity, provider.KindOf(err))
	}
	require.InDelta(t, 1500, had, 120, "three quarters of the time")
}
