package telemetry

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

func everything(string) bool { return true }

// TestHistory: a pool that ran empty for a moment is seen in coarse steps too, what was not sampled is not known, and after six hours all
// is forgotten.
func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHistory(clock.Wall{})
		for i := range 60 {
			warm := 3
			if i == 30 {
				warm = 0
			}
			h.Sample([]execution.PoolStatus{{Environment: "py", Namespace: "team", Size: 3, Warm: warm, Waiting: 3 - warm}})
			h.Claimed("team~py", time.Duration(1+i)*time.Millisecond)
			time.Sleep(HistoryStep)
		}
		time.Sleep(5 * time.Minute)
		h.Started("team~py", time.Minute)
		h.Wrote("team~py", time.Second)
		h.Wrote("team~py", time.Second)
		got, err := h.Read(20*time.Minute, time.Minute, everything)
		require.NoError(t, err)
		require.Len(t, got.Pools, 1)
		p := got.Pools[0]
		require.Equal(t, "py", p.Environment)
		require.Equal(t, "team", p.Namespace)
		require.Len(t, p.Warm, 21)
		require.Equal(t, []int{-1, 3, 3, 3, 3, 3, 0, 3, 3, 3, 3, -1}, p.Warm[4:16])
		require.Equal(t, 3, slices.Max(p.Waiting))
		require.Equal(t, int64(60), p.Claims.All.Count)
		for of, took := range map[float64]time.Duration{30: p.Claims.All.P50, 57: p.Claims.All.P95, 60: p.Claims.All.P99} {
			require.InEpsilon(t, of, took.Seconds()*1000, .25)
		}
		require.Equal(t, int64(1), p.Starts.All.Count)
		require.Equal(t, int64(2), p.FirstBytes.All.Count)
		require.InEpsilon(t, 1, p.FirstBytes.All.P50.Seconds(), .25)
		none, err := h.Read(time.Hour, 0, func(string) bool { return false })
		require.NoError(t, err)
		require.Empty(t, none.Pools)
		for _, wrong := range [][2]time.Duration{
			{0, 0}, {7 * time.Hour, 0}, {time.Hour, time.Second}, {time.Hour, 15 * time.Second}, {time.Hour, -10},
		} {
			_, err := h.Read(wrong[0], wrong[1], everything)
			require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", wrong)
		}
		fine, err := h.Read(6*time.Hour, 30*time.Second, everything)
		require.NoError(t, err)
		require.Len(t, fine.Pools[0].Size, 721)
		time.Sleep(7 * time.Hour)
		h.Sample(nil)
		gone, err := h.Read(HistorySpan, 0, everything)
		require.NoError(t, err)
		require.Empty(t, gone.Pools)
	})
}

// TestHistoryIsBounded: of a thousand environments some are kept, and how many are not is said.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := NewHistory(clock.Wall{})
	var pools []execution.PoolStatus
	for i := range 1000 {
		pools = append(pools, execution.PoolStatus{Environment: "e" + strconv.Itoa(i)})
		h.Claimed("e"+strconv.Itoa(i), time.Hour)
	}
	h.Sample(pools)
	got, err := h.Read(time.Hour, 0, everything)
	require.NoError(t, err)
	require.Len(t, got.Pools, mostEnvironments)
	require.Equal(t, 1000-mostEnvironments, got.Missing)
}

// TestHistoryIsFair: a tenant with a thousand environments leaves room for one who comes later with a few, and of its own those that are
// used take the place of those that are not.
func TestHistoryIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHistory(clock.Wall{})
		pools := []execution.PoolStatus{}
		for i := range 1000 {
			pools = append(pools, execution.PoolStatus{Environment: fmt.Sprintf("e%03d", i), Namespace: "many"})
		}
		h.Sample(pools)
		for i := range 3 {
			pools = append(pools, execution.PoolStatus{Environment: fmt.Sprint("e", i), Namespace: "few"})
		}
		h.Claimed("many~e005", time.Second)
		names := func(namespace string) (list []string) {
			got, err := h.Read(HistorySpan, 0, func(key string) bool { return execution.NamespaceOf(key) == namespace })
			require.NoError(t, err)
			for _, p := range got.Pools {
				list = append(list, p.Environment)
			}
			return list
		}
		for range 3 {
			h.Sample(pools)
			require.Equal(t, []string{"e0", "e1", "e2"}, names("few"))
			require.Len(t, names("many"), mostEnvironments-3)
			require.Contains(t, names("many"), "e005", "it is used")
		}
		got, err := h.Read(time.Hour, 0, func(key string) bool { return execution.NamespaceOf(key) == "few" })
		require.NoError(t, err)
		require.Zero(t, got.Missing)
		got, err = h.Read(time.Hour, 0, everything)
		require.NoError(t, err)
		require.Equal(t, 1003-mostEnvironments, got.Missing)
		h.Started("many~e999", time.Second)
		require.Contains(t, names("many"), "e999")
		require.Contains(t, names("many"), "e005")
		require.Len(t, names("many"), mostEnvironments-3)
		for i := range 61 { // all that are kept are used from now on
			h.Claimed("many~"+names("many")[i], time.Second)
		}
		h.Claimed("many~e500", time.Second)
		require.NotContains(t, names("many"), "e500", "what was used just now gives way to nobody")
		time.Sleep(11 * time.Minute)
		h.Claimed("many~e500", time.Second)
		require.Contains(t, names("many"), "e500")
	})
}

// TestLatenciesAreThoseOfASortedList compares with the list itself: a percentile is within a quarter of the truth, and what was counted in
// two histograms is what one would have counted.
func TestLatenciesAreThoseOfASortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(int64(100*time.Microsecond), int64(10*time.Minute)), 1, 200).Draw(t, "took")
		var halves [2]histogram
		for i, d := range list {
			halves[i%2][bucketOf(time.Duration(d))]++
		}
		halves[0].merge(&halves[1])
		got := halves[0].latency()
		slices.Sort(list)
		require.Equal(t, int64(len(list)), got.Count)
		for of, took := range map[float64]time.Duration{.5: got.P50, .95: got.P95, .99: got.P99} {
			want := list[int(math.Ceil(of*float64(len(list))))-1]
			require.InEpsilon(t, float64(want), float64(took), .25)
		}
	})
}
