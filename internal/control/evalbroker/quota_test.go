package evalbroker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/tenancy"
)

func waiting(id string, snapshot uint64) *drover.Evaluation {
	return &drover.Evaluation{
		ID: id, JobID: id, Namespace: "default", Status: drover.EvalBlocked, CreateIndex: snapshot, SnapshotIndex: snapshot,
		QuotaLimitReached: "q",
	}
}

// left has a quota with that many MHz left, of which each evaluation asks for 100.
type left int

func (l left) Account(string) *quota.Account {
	cpu := int(l)
	return &quota.Account{Quota: "q", Limits: &tenancy.QuotaLimit{RegionLimit: &tenancy.QuotaResources{CPU: &cpu}}}
}

func (left) Ask(*drover.Evaluation) (string, quota.Amount) { return "default", quota.Amount{CPU: 100} }

// unlimited is where no quota is.
type unlimited struct{ left }

func (unlimited) Account(string) *quota.Account { return nil }

// A quota with room wakes as many as it has room for, the oldest first, and the next ones once those are through.
func TestAQuotaWakesAsManyAsItHasRoomFor(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	for _, id := range []string{"a", "b", "c", "d"} {
		b.Block(waiting(id, 10), drover.Capacity{})
	}
	room := func(string) (drover.Capacity, bool) { return drover.Capacity{CPU: 1 << 30}, true }
	b.Freed("n", "class", 11)
	require.Empty(t, b.Wake(room, left(1000)), "a node helps none of them")
	b.QuotaFreed("other", 12)
	b.QuotaFreed("q", 10)
	require.Empty(t, b.Wake(room, left(1000)), "they have seen that")
	b.QuotaFreed("q", 12)
	require.Equal(t, []string{"a", "b"}, ids(b.Wake(room, left(250))))
	require.Empty(t, b.Wake(room, left(250)), "what the woken ones may use is theirs")
	require.True(t, b.Finished("a"))
	require.Equal(t, []string{"c"}, ids(b.Wake(room, left(250))))
	b.QuotaFreed("q", 13)
	require.Empty(t, b.Wake(room, left(99)))
	require.True(t, b.Finished("b"))
	require.True(t, b.Finished("c"))
	require.Empty(t, b.Wake(room, left(1000)), "it has not become more since")
	b.QuotaFreed("q", 14)
	require.Equal(t, []string{"d"}, ids(b.Wake(room, unlimited{})), "without a limit it runs")
}

// What waits for nodes, too, is woken by either.
func TestWhoWaitsForAQuotaAndForANode(t *testing.T) {
	t.Parallel()
	room := func(string) (drover.Capacity, bool) { return drover.Capacity{CPU: 1000}, true }
	for _, free := range []func(b *Blocked){
		func(b *Blocked) { b.Freed("n", "class", 11) }, func(b *Blocked) { b.QuotaFreed("q", 11) },
	} {
		b := NewBlocked()
		e := waiting("a", 10)
		e.EscapedComputedClass = true
		b.Block(e, drover.Capacity{CPU: 1})
		require.Empty(t, b.Wake(room, left(1000)))
		free(b)
		require.Equal(t, []string{"a"}, ids(b.Wake(room, left(1000))))
	}
}
