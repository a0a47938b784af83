package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// TestChaos does arbitrary things to a node and looks at what must always hold. No task runs twice (the world panics), and what
// control heard is never taken back. In the end everything that was stopped has ended and left nothing.
func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func chaos(t *testing.T, rng *rand.Rand) {
	const n = 8
	b := newBundle(t).start()
	ids := map[int]string{}
	for range 120 {
		i := rng.IntN(n)
		switch rng.IntN(12) {
		case 0, 1, 2:
			if ids[i] == "" {
				a := b.alloc(i, []string{"batch", "service"}[rng.IntN(2)])
				if rng.IntN(3) == 0 {
					a.Job.TaskGroups[0].Tasks[0].Config["stubborn"] = true
				}
				ids[i] = a.ID
				b.control.assign(a)
			}
		case 3:
			b.stopAlloc(ids[i])
		case 4, 5:
			if running := b.world.Running(fmt.Sprintf("t%d", i)); running != nil {
				running.End(driver.Exit{Code: rng.IntN(2)})
			}
		case 6:
			b.leave()
			if rng.IntN(2) == 0 {
				if running := b.world.Running(fmt.Sprintf("t%d", i)); running != nil {
					running.End(driver.Exit{Code: rng.IntN(2)})
				}
			}
			b.start()
		case 7:
			b.control.goAway(drover.Errorf(drover.Unavailable, "away"))
		case 8, 9:
			b.control.goAway(nil)
		case 10:
			_ = b.agent.RestartTask(context.Background(), ids[i], "", rng.IntN(2) == 0) // may say no
		case 11:
			require.NoError(t, b.agent.CollectGarbage(context.Background(), ""))
		}
		sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		for i := range n {
			b.world.Running(fmt.Sprintf("t%d", i))
		}
	}
	b.control.goAway(nil)
	for _, id := range ids {
		b.stopAlloc(id)
	}
	sleep(5 * time.Minute)
	for i, id := range ids {
		a := b.control.alloc(id)
		require.True(t, a.ClientTerminal(), "allocation %d is %s", i, a.ClientStatus)
		require.Nil(t, b.world.Running(fmt.Sprintf("t%d", i)))
		statuses := b.control.statuses(id)
		for k, s := range statuses {
			if s == "complete" || s == "failed" {
				for _, later := range statuses[k:] {
					require.Equal(t, s, later, "allocation %d: %v", i, statuses)
				}
			}
		}
	}
}

// stopAlloc makes control want the allocation's end, if it has not ended.
func (b *bundle) stopAlloc(id string) {
	a := b.control.alloc(id)
	if a == nil || a.ClientTerminal() || a.ServerTerminal() {
		return
	}
	stopped := *a
	stopped.DesiredStatus, stopped.AllocModifyIndex = drover.AllocDesiredStop, a.AllocModifyIndex+1
	b.control.assign(&stopped)
}
