package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/exchange"
)

// moment is a state that control once had. Later ones are of a higher index, or of a later epoch.
type moment struct {
	age   string
	index uint64
}

// Whatever servers lag, restart from what they had earlier, lead again or do not know that they don't: what the node does is never
// older than what it has seen. And once they have all caught up it does what is wanted now.
func TestANodeNeverObeysOlderState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		epoch := cluster.NextEpoch("")
		age := func() string { return (&cluster.State{ID: "c", Epoch: epoch}).Age() }
		history := []moment{{age(), 1}}
		servers := make([]int, 3) // how far each is in the history
		var s Sight
		seen, obeyed := 0, 0 // where the node is in it
		pull := func(from int) {
			m := history[servers[from]]
			ok, _ := s.Take(exchange.Assignment{Index: 1 + m.index/2, State: m.index, Age: m.age}, rapid.Bool().Draw(t, "insist"))
			if ok {
				require.GreaterOrEqual(t, servers[from], seen, "the node has seen a newer one")
				seen, obeyed = servers[from], servers[from]
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(*rapid.T) { history = append(history, moment{age(), history[len(history)-1].index + 1}) },
			"restore": func(t *rapid.T) {
				epoch = cluster.NextEpoch(epoch)
				back := rapid.IntRange(0, len(history)-1).Draw(t, "back")
				history = append(history, moment{age(), history[back].index})
			},
			"catch up": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "server")
				servers[i] = rapid.IntRange(servers[i], len(history)-1).Draw(t, "to")
			},
			"restart": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "server")
				servers[i] = rapid.IntRange(0, servers[i]).Draw(t, "to")
			},
			"register": func(t *rapid.T) { // a leader answers; it may not know that another has replaced it
				i := rapid.IntRange(0, 2).Draw(t, "leader")
				if rapid.Bool().Draw(t, "really") {
					servers[i] = len(history) - 1
				}
				m := history[servers[i]]
				s.Registered(exchange.Registration{Index: m.index, Age: m.age})
				seen = max(seen, servers[i])
			},
			"unknown": func(*rapid.T) { s.Forget() },
			"pull":    func(t *rapid.T) { pull(rapid.IntRange(0, 2).Draw(t, "server")) },
		})
		servers[0] = len(history) - 1
		pull(0)
		require.Equal(t, len(history)-1, obeyed)
	})
}

// A server that is alone and was put back to an older state is obeyed after a while; one of several never is.
func TestWhoMayGoBack(t *testing.T) {
	t.Parallel()
	var s Sight
	take := func(a exchange.Assignment, insist bool) bool { ok, _ := s.Take(a, insist); return ok }
	require.True(t, take(exchange.Assignment{Index: 9, State: 9}, false))
	require.False(t, take(exchange.Assignment{Index: 3, State: 3}, false))
	require.True(t, take(exchange.Assignment{Index: 3, State: 3}, true))
	age := (&cluster.State{ID: "c", Epoch: cluster.NextEpoch("")}).Age()
	require.True(t, take(exchange.Assignment{Index: 2, State: 4, Age: age}, false), "it became one of several")
	require.False(t, take(exchange.Assignment{Index: 2, State: 3, Age: age}, true))
	require.False(t, take(exchange.Assignment{Index: 2, State: 9}, true), "it does not know its cluster yet")

	s.Registered(exchange.Registration{Index: 1})
	require.Equal(t, exchange.Seen{State: 1}, s.Now(), "it is alone again and has forgotten all")
	require.True(t, take(exchange.Assignment{Index: 1, State: 1}, false))
}
