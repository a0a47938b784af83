package learned

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

var start = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)

// offering is a machine type in a zone on demand.
func offering(typ, zone string) *fleet.Offering {
	return &fleet.Offering{
		Key: "p/" + typ + "/" + zone + "/on-demand", Provider: "p", Type: typ, Family: typ[:1], Zone: zone, Market: fleet.MarketOnDemand,
		QuotaGroup: typ[:1], QuotaUnits: 1,
	}
}

func cloud() *Cloud { return New(1, provider.Capabilities{Batch: 10}) }

// blocked returns whether nothing of the offering can be bought.
func blocked(b *Cloud, now time.Time, o *fleet.Offering) bool {
	why, _ := b.Blocked(now, o, "t")
	return why != ""
}

func TestAQuotaIsWhatWasInUseWhenTheCloudRefused(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	require.Equal(t, Room{Units: unlimited}, b.Room(start, "c", 5), "no limit was met")
	b.Created(start, o, "t", 0, 5, &provider.Error{Kind: provider.Quota, Group: "c"})
	r := b.Room(start, "c", 5)
	require.Zero(t, r.Units)
	require.WithinRange(t, r.Again, start.Add(time.Minute), start.Add(72*time.Second))
	require.Equal(t, int64(2), b.Room(start, "c", 3).Units, "two machines went")
	require.Equal(t, int64(4), b.Room(start, "c", 9).Over, "other pools took more than there is")

	later := start.Add(2 * time.Minute)
	r = b.Room(later, "c", 5)
	require.Equal(t, Room{Units: 1, Probe: true}, r, "it is tried with one machine whether it has risen")
	b.Created(later, o, "t", 1, 6, nil)
	require.Equal(t, int64(1), b.Room(later, "c", 6).Units, "it has, and grows by one at first")
	require.False(t, b.Room(later, "c", 6).Probe)
}

func TestAQuotaThatTheCloudTellsIsBelieved(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	b.Created(start, o, "t", 0, 5, &provider.Error{Kind: provider.Quota, Group: "c", Limit: 9})
	require.Equal(t, int64(4), b.Room(start, "c", 5).Units)
	_, met := b.Quota("m")
	require.False(t, met)
	q, met := b.Quota("c")
	require.True(t, met)
	require.Equal(t, int64(9), q.Limit)
}

func TestABurstOfRefusalsIsOne(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	for range 5 {
		b.Created(start, o, "t", 0, 5, &provider.Error{Kind: provider.Quota, Group: "c"})
	}
	once := b.Room(start, "c", 5).Again
	require.WithinRange(t, once, start.Add(time.Minute), start.Add(72*time.Second))
	b.Created(once, o, "t", 0, 5, &provider.Error{Kind: provider.Quota, Group: "c"})
	require.Greater(t, b.Room(once, "c", 5).Again.Sub(once), 2*time.Minute-time.Second, "the next refusal waits twice as long")
}

func TestAMachineThatIsGoneLetsAQuotaBeTriedAnew(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	b.Created(start, o, "t", 0, 5, &provider.Error{Kind: provider.Quota, Group: "c"})
	b.Destroyed(start, "m")
	require.True(t, b.Room(start, "c", 5).Again.After(start))
	b.Destroyed(start, "c")
	require.True(t, b.Room(start, "c", 5).Probe)
}

func TestLacksOfCapacityBlockWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	all := map[string]*fleet.Offering{
		"c5a": offering("c5", "a"), "c5b": offering("c5", "b"), "c6a": offering("c6", "a"),
		"m5b": offering("m5", "b"),
	}
	for scope, want := range map[provider.Scope][]string{
		provider.ScopeOffering: {"c5a"},
		provider.ScopeType:     {"c5a", "c5b"},
		provider.ScopeZone:     {"c5a", "c6a"},
		provider.ScopeFamily:   {"c5a", "c5b", "c6a"},
		provider.ScopeAll:      {"c5a", "c5b", "c6a", "m5b"},
	} {
		b := cloud()
		b.Created(start, all["c5a"], "t", 0, 0, &provider.Error{Kind: provider.Capacity, Scope: scope})
		var got []string
		for name, o := range all {
			if blocked(b, start.Add(time.Second), o) {
				got = append(got, name)
			}
			require.False(t, blocked(b, start.Add(time.Minute), o), "half a minute, and a fifth more")
		}
		require.ElementsMatch(t, want, got, scope)
		require.True(t, b.Probing(all["c5a"], "t"), "only few are tried at first")
		b.Created(start.Add(time.Minute), all["c5a"], "t", 1, 1, nil)
		require.False(t, b.Probing(all["c5a"], "t"))
	}
}

func TestAnotherMarketIsAnotherCapacity(t *testing.T) {
	t.Parallel()
	b, spot := cloud(), offering("c5", "a")
	spot.Key, spot.Market = "p/c5/a/spot", fleet.MarketSpot
	b.Created(start, spot, "t", 0, 0, &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeZone})
	require.True(t, blocked(b, start, spot))
	require.False(t, blocked(b, start, offering("c5", "a")))
}

func TestATypeThatThreeZonesLackIsAskedForInNone(t *testing.T) {
	t.Parallel()
	lacking := func(apart time.Duration) *Cloud {
		b := cloud()
		for n, zone := range []string{"a", "b", "c"} {
			b.Created(start.Add(time.Duration(n)*apart), offering("c5", zone), "t", 0, 0,
				&provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering})
		}
		return b
	}
	require.True(t, blocked(lacking(time.Second), start.Add(3*time.Second), offering("c5", "d")))
	require.False(t, blocked(lacking(time.Second), start.Add(3*time.Second), offering("c5d", "d")), "another type with a longer name")
	require.False(t, blocked(lacking(3*time.Minute), start.Add(6*time.Minute), offering("c5", "d")), "not within two minutes")
}

func TestTheBreakerOpensForWhatDoesNotBoot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcomes string // + booted, - did not
		open     bool
	}{
		{"--", false},
		{"---", true},
		{"+--", false},
		{"++---", true},
		{"+++---", false},
		{"+++++-----", false},
		{"++++------", true},
		{"----------++++++", false},
	} {
		b, o := cloud(), offering("c5", "a")
		for _, c := range tt.outcomes {
			if c == '+' {
				b.Booted(o, "t", time.Minute)
			} else {
				b.BootFailed(start, o, "t")
			}
		}
		require.Equal(t, tt.open, blocked(b, start, o), tt.outcomes)
		require.False(t, blocked(b, start, offering("c5", "b")), "another offering")
		why, _ := b.Blocked(start, o, "other")
		require.Empty(t, why, "another template")
	}
}

func TestABreakerThatStaysBadWaitsLonger(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	var waits []time.Duration
	for now, n := start, 0; n < 8; n++ {
		for range 3 {
			b.BootFailed(now, o, "t")
		}
		why, until := b.Blocked(now, o, "t")
		require.Contains(t, why, "did not boot")
		waits = append(waits, until.Sub(now))
		now = until
	}
	for n := range waits[1:4] {
		require.Greater(t, waits[n+1], waits[n])
	}
	require.LessOrEqual(t, waits[7], 36*time.Minute, "half an hour and a fifth at most")
	b.Booted(o, "t", time.Minute)
	require.False(t, b.Probing(o, "t"), "one that boots closes it")
}

func TestARefusedRequestOpensTheBreakerAtOnce(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	b.Created(start, o, "t", 0, 0, &provider.Error{Kind: provider.Config, Message: "no such image"})
	why, until := b.Blocked(start, o, "t")
	require.Equal(t, "refused: no such image", why)
	require.WithinRange(t, until, start.Add(5*time.Minute), start.Add(6*time.Minute))
	why, _ = b.Blocked(start, o, "mended")
	require.Empty(t, why)
}

func TestWhatStopsAllCreates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tell        func(b *Cloud, o *fleet.Offering, now time.Time)
		first, most time.Duration // of the pause, without jitter
	}{
		"credentials": {func(b *Cloud, o *fleet.Offering, now time.Time) {
			b.Created(now, o, "t", 0, 0, &provider.Error{Kind: provider.Auth, Message: "expired"})
		}, 30 * time.Second, 10 * time.Minute},
		"outage": {func(b *Cloud, o *fleet.Offering, now time.Time) {
			b.Created(now, o, "t", 0, 0, &provider.Error{Kind: provider.Transient, Message: "503"})
		}, 200 * time.Millisecond, 30 * time.Second},
		"log": {func(b *Cloud, _ *fleet.Offering, now time.Time) {
			b.Unrecorded(now, errors.New("no quorum"))
		}, time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, o, now := cloud(), offering("c5", "a"), start
			for n := range 16 {
				tt.tell(b, o, now)
				tt.tell(b, o, now) // of the same burst
				why, until := b.Blocked(now, offering("m5", "b"), "t")
				require.NotEmpty(t, why)
				want := min(tt.first<<n, tt.most)
				require.WithinRange(t, until, now.Add(want), now.Add(want+want/5), "pause %d", n)
				now = until
			}
			require.False(t, blocked(b, now, o))
			b.Created(now, o, "t", 1, 1, nil)
			tt.tell(b, o, now)
			_, until := b.Blocked(now, o, "t")
			require.Less(t, until.Sub(now), 2*tt.first, "one success, and it begins anew")
		})
	}
}

func TestErrorsThatSayNothingOfTheOffering(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	for _, err := range []error{
		errors.New("without a kind"), &provider.Error{Kind: provider.Ambiguous}, &provider.Error{Kind: provider.NotFound},
		&provider.Error{Kind: provider.RateLimited, RetryAt: start.Add(time.Minute)},
	} {
		b.Created(start, o, "t", 0, 0, err)
		require.False(t, blocked(b, start, o), "%v", err)
	}
}

func TestCallsAreLimitedByKind(t *testing.T) {
	t.Parallel()
	b := New(1, provider.Capabilities{Rates: map[provider.Call]provider.Rate{
		provider.CallCreate: {PerSecond: 2, Burst: 10}, provider.CallDestroy: {PerSecond: 1, Burst: 1},
	}})
	require.Equal(t, 10, b.Tokens(start, provider.CallCreate))
	b.Started(start, provider.CallCreate, 10)
	require.Zero(t, b.Tokens(start, provider.CallCreate))
	require.Equal(t, 1, b.Tokens(start, provider.CallDestroy), "each kind has its own")
	require.Equal(t, start.Add(500*time.Millisecond), b.TokensAt(start, provider.CallCreate, 0))
	require.Equal(t, start.Add(2*time.Second), b.TokensAt(start, provider.CallCreate, 3))
	require.Equal(t, 3, b.Tokens(start.Add(1600*time.Millisecond), provider.CallCreate))
	require.Equal(t, 10, b.Tokens(start.Add(time.Hour), provider.CallCreate), "no more than the burst is saved up")
	require.Equal(t, 200, b.Tokens(start, provider.CallList), "of a kind that the provider does not tell of")
}

func TestARateThatTheCloudRefusedIsHalved(t *testing.T) {
	t.Parallel()
	b := New(1, provider.Capabilities{Rates: map[provider.Call]provider.Rate{provider.CallList: {PerSecond: 10, Burst: 10}}})
	limited := &provider.Error{Kind: provider.RateLimited, RetryAt: start.Add(2 * time.Second)}
	for range 3 { // of one burst
		b.Done(start, provider.CallList, limited)
	}
	require.Zero(t, b.Tokens(start.Add(time.Second), provider.CallList), "not before it says")
	require.Equal(t, start.Add(2*time.Second), b.TokensAt(start, provider.CallList, 0))
	require.Equal(t, 10, b.Tokens(start.Add(2*time.Second), provider.CallList), "at five a second")

	now := start.Add(2 * time.Second)
	for range 20 { // it grows again, by a tenth each ten seconds, up to what the provider told
		now = now.Add(10 * time.Second)
		b.Done(now, provider.CallList, nil)
	}
	require.InDelta(t, 10, b.rates[provider.CallList].rate, 1e-9)
	b.Done(now, provider.CallList, &provider.Error{Kind: provider.RateLimited, RetryAt: now.Add(72 * time.Hour)})
	require.Less(t, b.TokensAt(now, provider.CallList, 0).Sub(now), 10*time.Minute, "a lying cloud does not stop us for days")
}

func TestCreatesInFlightGrowUntilOneFails(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	require.Equal(t, 8, b.CreateRoom(start))
	for range 8 {
		b.Started(start, provider.CallCreate, 1)
	}
	require.Zero(t, b.CreateRoom(start))
	for range 8 {
		b.Created(start, o, "t", 1, 1, nil)
	}
	require.Equal(t, 16, b.CreateRoom(start), "twice as many a round")
	b.Started(start, provider.CallCreate, 1)
	b.Created(start, o, "t", 0, 0, &provider.Error{Kind: provider.Ambiguous})
	require.Equal(t, 14, b.CreateRoom(start), "a tenth less")
	b.Started(start, provider.CallCreate, 1)
	b.Created(start, o, "t", 1, 1, nil)
	require.Equal(t, 14, b.CreateRoom(start), "one more a round")
}

// EC2 limits the calls that create machines, and the machines: the narrower one counts.
func TestCallsAndMachinesHaveABudgetEach(t *testing.T) {
	t.Parallel()
	b := New(1, provider.Capabilities{
		Batch: 50, Creates: provider.Rate{PerSecond: 1, Burst: 2}, Rates: map[provider.Call]provider.Rate{provider.CallCreate: {
			PerSecond: 100,
			Burst:     100,
		}},
	})
	require.Equal(t, 50, b.Batch())
	require.Equal(t, 2, b.CreateRoom(start))
	b.Started(start, provider.CallCreate, 50)
	b.Started(start, provider.CallCreate, 5)
	require.Zero(t, b.CreateRoom(start))
	require.Zero(t, b.Tokens(start, provider.CallCreate), "without a call there is no machine")
	require.Equal(t, start.Add(time.Second), b.TokensAt(start, provider.CallCreate, 0))
	require.Equal(t, 100, b.Tokens(start.Add(time.Second), provider.CallCreate))
	b.Created(start.Add(time.Second), offering("c5", "a"), "t", 0, 0, &provider.Error{Kind: provider.RateLimited})
	require.Equal(t, 70, b.rates[provider.CallCreate].whole(start.Add(1200*time.Millisecond)),
		"which of them was spent is not known: half is believed gone")
}

func TestBootsArePredictedByTheNearestPast(t *testing.T) {
	t.Parallel()
	b := cloud()
	require.Equal(t, 40*time.Second, b.BootQuantile("o", "t", 0.5), "a guess")
	require.Equal(t, 90*time.Second, b.BootQuantile("o", "t", 0.95))
	require.Equal(t, 5*time.Minute, b.BootDeadline("o", "t", time.Hour), "twice the guess of the 99th percentile")
	require.Equal(t, 2*time.Minute, b.BootDeadline("o", "t", 2*time.Minute), "never longer than the limit")
	c5, other := offering("c5", "a"), offering("c5", "b")
	for n := range 8 {
		require.Equal(t, 40*time.Second, b.BootQuantile(c5.Key, "c5", 0.5), "%d are too few", n)
		b.Booted(c5, "t", 10*time.Second)
	}
	near := func(want, got time.Duration) {
		t.Helper()
		require.GreaterOrEqual(t, got, want, "an upper bound")
		require.Less(t, got, want*6/5, "a quarter of an octave wide")
	}
	near(10*time.Second, b.BootQuantile(c5.Key, "c5", 0.5))
	near(10*time.Second, b.BootQuantile(other.Key, "c5", 0.5))
	near(10*time.Second, b.BootQuantile("m", "m5", 0.5))
	for range 8 {
		b.Booted(other, "t", 100*time.Second)
	}
	near(100*time.Second, b.BootQuantile(other.Key, "c5", 0.5))
	near(10*time.Second, b.BootQuantile(c5.Key, "c5", 0.5))
	require.Equal(t, time.Minute, b.BootDeadline(c5.Key, "c5", time.Hour), "a minute at least")
}

func TestQuantilesAreUpperBounds(t *testing.T) {
	t.Parallel()
	require.Zero(t, (&histogram{}).Quantile(0.5))
	rapid.Check(t, func(t *rapid.T) {
		h := &histogram{}
		d := time.Duration(rapid.IntRange(1, 3_600_000).Draw(t, "ms")) * time.Millisecond
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			h.Add(d)
		}
		low, high := h.Quantile(0.1), h.Quantile(0.99)
		require.Equal(t, low, high)
		require.GreaterOrEqual(t, high, d)
		require.LessOrEqual(t, high.Seconds(), max(d.Seconds()*1.2, 0.3))
	})
}

func TestInterruptionsAreTheProvidersWordAndWhatWasSeen(t *testing.T) {
	t.Parallel()
	b, o := cloud(), offering("c5", "a")
	o.Interrupted = 0.1
	require.Zero(t, b.Interruptions(o), "on demand nothing is taken back")
	o.Market = fleet.MarketSpot
	require.InDelta(t, 0.1, b.Interruptions(o), 1e-9)
	b.Ran(o.Key, 24*time.Hour, false)
	require.InDelta(t, 0.05, b.Interruptions(o), 1e-9, "its word counts as a day")
	for range 24 {
		b.Ran(o.Key, time.Hour, true)
	}
	require.InDelta(t, (2.4+24)/72, b.Interruptions(o), 1e-9)
}

func TestChanceIsEvenAndRepeats(t *testing.T) {
	t.Parallel()
	b, below, sum := cloud(), 0, 0.0
	for n := range 10_000 {
		c := b.Chance(fmt.Sprint("key", n))
		require.True(t, c >= 0 && c < 1)
		sum += c
		if c < 0.25 {
			below++
		}
	}
	require.InDelta(t, 5000, sum, 100)
	require.InDelta(t, 2500, below, 150)
	require.Equal(t, cloud().Chance("a"), b.Chance("a"), "equal seeds, equal numbers")
	require.NotEqual(t, New(2, provider.Capabilities{}).Chance("a"), b.Chance("a"))
}

// Whatever a cloud answers: what is refused now may be tried again within an hour or so.
func TestNothingIsRefusedForEver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := cloud(), start
		kinds := []provider.Kind{
			provider.Transient, provider.RateLimited, provider.Quota, provider.Capacity, provider.Ambiguous, provider.Auth, provider.Config,
		}
		offers := []*fleet.Offering{offering("c5", "a"), offering("c5", "b"), offering("m5", "a")}
		for range rapid.IntRange(1, 60).Draw(t, "answers") {
			o := rapid.SampledFrom(offers).Draw(t, "offering")
			b.Started(now, provider.CallCreate, 1)
			err := &provider.Error{
				Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Group: o.QuotaGroup, RetryAt: now.Add(time.Minute),
				Scope: rapid.SampledFrom([]provider.Scope{provider.ScopeOffering, provider.ScopeZone, provider.ScopeAll}).Draw(t, "scope"),
			}
			b.Created(now, o, "t", 0, 3, err)
			if rapid.Bool().Draw(t, "dead") {
				b.BootFailed(now, o, "t")
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "pause")) * time.Second)
		}
		for _, o := range offers {
			why, until := b.Blocked(now, o, "t")
			require.LessOrEqual(t, until.Sub(now), 72*time.Minute, why)
			r := b.Room(now, o.QuotaGroup, 3)
			require.True(t, r.Units > 0 || r.Again.Sub(now) <= 18*time.Minute)
		}
		require.LessOrEqual(t, b.TokensAt(now, provider.CallCreate, 0).Sub(now), 10*time.Minute)
		require.Positive(t, b.CreateRoom(now))
	})
}
