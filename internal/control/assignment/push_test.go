package assignment

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
)

// Runners that come and go in a pool that has enough are told in few entries, each of which all servers store and apply. Where a pool
// runs out, or one server's share of it, claims may wait for the next one.
func TestReportsOfAPoolThatHasEnoughShareEntries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers, claims, warm int
		many                  bool
	}{
		"enough":                  {0, 1, 70, false},
		"being filled":            {0, 0, 70, true},
		"few":                     {0, 1, 10, true},
		"three servers":           {3, 1, 70, false},
		"one of three has little": {3, 25, 52, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t)
			ctx := t.Context()
			const size, placed, pushed = 100, 140, 30
			var ids []string
			for i := range placed {
				ids = append(ids, fmt.Sprintf("a%03d", i))
			}
			propose := func(cmd command.Command) any {
				_, result, err := b.log.Propose(ctx, cmd)
				require.NoError(t, err)
				return result
			}
			var first uint64
			for i := range c.servers {
				begun := propose(&command.BeginIncarnation{Server: fmt.Sprint("s", i)}).(command.Begun)
				first = cmp.Or(first, begun.Incarnation)
			}
			b.placeIn(t, &drover.WarmPool{Size: size}, "n1", ids...)
			n := command.NodeUpdates{NodeID: "n1"}
			for _, id := range ids[:c.warm+c.claims] {
				n.Updates = append(n.Updates, update(id, drover.AllocClientRunning)...)
			}
			propose(&command.UpdateAllocs{Nodes: []command.NodeUpdates{n}})
			claims, left := &command.RecordRunners{Incarnation: first}, c.claims
			for a := range b.store.Snapshot().AllocationsByJob("default", drover.JobTypeService) {
				if left > 0 && a.Lease == first && a.ClientStatus == drover.AllocClientRunning {
					claims.Claims = append(claims.Claims, command.RunnerClaim{AllocID: a.ID, Claim: drover.Claim{RunnerID: "r" + a.ID}})
					left--
				}
			}
			for _, r := range propose(claims).([]command.ClaimResult) {
				require.NoError(t, r.Err)
			}
			before, rest := len(b.log.updates), ids[c.warm+c.claims:][:pushed]
			done := make(chan error, len(rest))
			for _, id := range rest {
				go func() { done <- b.Push(ctx, "n1", update(id, drover.AllocClientRunning)) }() // ends when it is stored
				clock.Sleep(ctx, clock.Wall{}, 10*time.Millisecond)
			}
			for range rest {
				require.NoError(t, <-done)
			}
			entries := len(b.log.updates) - before
			require.Equal(t, c.many, entries > len(rest)/4, "%s: %d entries of %d updates", name, entries, len(rest))
		})
	}
}
