package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
)

// A follower went on with a report that its node had given up and replaced, through another server. The older one came last, and an
// allocation that ran was pending in the state. TestReportsComeInAnyOrder has nodes report, each report held by any number of servers
// that pass it on whenever they like, also after the node has restarted, and twice. The oracle is the largest order that came so far.
func TestReportsComeInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := setup(t)
		b.do(node("n1"))
		j := b.do(register(job("j", "service", 3))).(*drover.Job)
		ids := []string{"a0", "a1", "a2"}
		for _, id := range ids {
			b.do(plan(j, placed(id, "j")))
		}
		order, want := uint64(0), map[string]exchange.AllocUpdate{}
		var held []exchange.AllocUpdate // by servers
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(r, "what"); {
			case what == 0: // the node restarts
				order = (order>>40 + 1) << 40
			case what < 5 || len(held) == 0:
				order++
				u := exchange.AllocUpdate{
					ID: rapid.SampledFrom(ids).Draw(r, "alloc"), ClientStatus: rapid.SampledFrom([]string{"pending", "running"}).Draw(r, "status"),
					ClientDescription: fmt.Sprint(i), Order: order,
				}
				for range rapid.IntRange(1, 3).Draw(r, "copies") {
					held = append(held, u)
				}
			default:
				n := rapid.IntRange(0, len(held)-1).Draw(r, "passed on")
				u := held[n]
				held = append(held[:n:n], held[n+1:]...)
				b.do(&command.UpdateAllocs{Time: 9, Nodes: []command.NodeUpdates{{NodeID: "n1", Updates: []exchange.AllocUpdate{u}}}})
				if u.Order >= want[u.ID].Order {
					want[u.ID] = u
				}
			}
			for id, u := range want {
				a := b.now().Allocation(id)
				require.Equal(r, []any{u.ClientStatus, u.ClientDescription, u.Order}, []any{a.ClientStatus, a.ClientDescription, a.Reported}, id)
			}
		}
	})
}

// TestReportsWithoutAnOrder: those of a node of an older program count as they come, as before.
func TestReportsWithoutAnOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	j := b.do(register(job("j", "service", 1))).(*drover.Job)
	b.do(plan(j, placed("a", "j")))
	first := update("a", drover.AllocClientRunning)
	first.Nodes[0].Updates[0].Order = 7
	b.do(first)
	b.do(update("a", drover.AllocClientPending))
	require.Equal(t, drover.AllocClientPending, b.now().Allocation("a").ClientStatus)
	require.Equal(t, uint64(7), b.now().Allocation("a").Reported)
}

// A plan that changes an allocation in place was made before the newest report. An older report that comes behind it, through another
// server, is still an older one.
func TestAPlanInPlaceDoesNotForgetWhatWasReported(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{keepsOrder - 1: drover.AllocClientPending, keepsOrder: drover.AllocClientRunning} {
		b := setup(t)
		b.do(&command.RaiseVersion{Version: version})
		b.do(node("n1"))
		j := b.do(register(job("j", "service", 1))).(*drover.Job)
		b.do(plan(j, placed("a", "j")))
		report := func(status string, order uint64) {
			u := update("a", status)
			u.Nodes[0].Updates[0].Order = order
			b.do(u)
		}
		inPlace := *b.now().Allocation("a")
		report(drover.AllocClientRunning, 7)
		b.do(plan(j, &inPlace))
		report(drover.AllocClientPending, 6)
		require.Equal(t, want, b.now().Allocation("a").ClientStatus, "version %d", version)
	}
}
