package learned

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// TestBeliefsOutliveARestart: quotas, lacks, breakers, boot times and interruptions are what they were.
func TestBeliefsOutliveARestart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a := &fleet.Offering{Key: "p/a/z/spot", Type: "a", Zone: "z", Market: fleet.MarketSpot, QuotaGroup: "g", QuotaUnits: 1, Interrupted: 0.1}
	c := &fleet.Offering{Key: "p/c/z/spot", Type: "c", Zone: "z", Market: fleet.MarketSpot, QuotaGroup: "h", QuotaUnits: 1}
	learn := func(b *Cloud) {
		b.Created(now, a, "t", 0, 7, &provider.Error{Kind: provider.Quota, Group: "g"})
		b.Created(now, c, "t", 0, 0, &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering})
		for range 4 {
			b.BootFailed(now, a, "broken")
		}
		for i := range 30 {
			b.Booted(a, "t", time.Duration(20+i)*time.Second)
		}
		b.Ran(a.Key, 5*time.Hour, true)
	}
	before := New(1, provider.Capabilities{})
	learn(before)
	text := before.Memory()
	require.Equal(t, string(text), string(before.Memory()), "the same beliefs give the same text")

	after := New(1, provider.Capabilities{})
	require.NoError(t, after.Remember(text))
	require.Equal(t, string(text), string(after.Memory()))
	for _, o := range []*fleet.Offering{a, c} {
		for _, template := range []string{"t", "broken"} {
			was, until := before.Blocked(now.Add(time.Second), o, template)
			is, again := after.Blocked(now.Add(time.Second), o, template)
			require.Equal(t, was, is)
			require.Equal(t, until.Unix(), again.Unix())
		}
	}
	require.Equal(t, before.BootQuantile(a.Key, a.Type, 0.9), after.BootQuantile(a.Key, a.Type, 0.9))
	require.InDelta(t, before.Interruptions(a), after.Interruptions(a), 1e-9)

	for _, bad := range []string{"{", `{"Version":99}`} {
		fresh := New(1, provider.Capabilities{})
		require.Error(t, fresh.Remember([]byte(bad)))
		require.Equal(t, string(New(1, provider.Capabilities{}).Memory()), string(fresh.Memory()))
	}
	require.NoError(t, after.Remember(nil))
}
