package agent

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// counting is a control that notes when messages come, and what was in them.
type counting struct {
	exchange.Controller
	at      []time.Time
	updates []int
	last    exchange.AllocUpdate
}

func (c *counting) Push(_ context.Context, _ string, updates []exchange.AllocUpdate) error {
	c.at, c.updates, c.last = append(c.at, time.Now()), append(c.updates, len(updates)), updates[len(updates)-1]
	return nil
}

func pushing(t *testing.T) (*counting, *pusher) {
	c := &counting{}
	p := newPusher(c, "n", 0, clock.Wall{}, slog.New(slog.DiscardHandler))
	contacted := make(chan struct{})
	close(contacted)
	go p.run(t.Context(), contacted) // ends with the test
	return c, p
}

func TestALoneUpdateWaitsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := pushing(t)
		for i := range 200 { // as fast as someone who waits for each registers, sees it run, and purges
			clock.Sleep(t.Context(), clock.Wall{}, 10*time.Millisecond)
			now := time.Now()
			p.add(exchange.AllocUpdate{ID: fmt.Sprint(i), ClientStatus: drover.AllocClientRunning})
			synctest.Wait()
			require.Len(t, c.at, i+1)
			require.Equal(t, now, c.at[i])
		}
	})
}

// A roll-out goes on when control knows of the health, which once rode along a second later.
func TestHealthIsToldSoonAndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := pushing(t)
		healthy := &drover.AllocDeploymentStatus{Healthy: new(true)}
		for _, id := range []string{"a", "b"} {
			p.know(&drover.Allocation{ID: id, ClientStatus: drover.AllocClientRunning})
		}
		begin := time.Now()
		p.add(exchange.AllocUpdate{ID: "b", ClientStatus: drover.AllocClientRunning})
		clock.Sleep(t.Context(), clock.Wall{}, 100*time.Millisecond)
		p.add(exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientRunning, DeploymentStatus: healthy})
		clock.Sleep(t.Context(), clock.Wall{}, 100*time.Millisecond)
		p.add(exchange.AllocUpdate{ID: "b", ClientStatus: drover.AllocClientRunning, DeploymentStatus: healthy})
		clock.Sleep(t.Context(), clock.Wall{}, time.Second)
		require.Equal(t, []int{2}, c.updates)
		require.Equal(t, 100*time.Millisecond+pushHealth, c.at[0].Sub(begin))

		begin = time.Now()
		p.add(exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientRunning, DeploymentStatus: healthy}) // an event of its task
		clock.Sleep(t.Context(), clock.Wall{}, 2*time.Second)
		require.Equal(t, pushInterval, c.at[1].Sub(begin), "its health is known")

		p.know(&drover.Allocation{ID: "a", ClientStatus: drover.AllocClientRunning}) // in another deployment
		begin = time.Now()
		p.add(exchange.AllocUpdate{ID: "a", ClientStatus: drover.AllocClientRunning, DeploymentStatus: healthy})
		clock.Sleep(t.Context(), clock.Wall{}, time.Second)
		require.Equal(t, pushHealth, c.at[2].Sub(begin))
	})
}

func TestManyUpdatesShareMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := pushing(t)
		const n = 1000
		for i := range n {
			p.know(&drover.Allocation{ID: fmt.Sprint(i), ClientStatus: drover.AllocClientPending})
		}
		for i := range n { // 500 allocations a second, each runs and is complete 20 ms later
			p.add(exchange.AllocUpdate{ID: fmt.Sprint(i), ClientStatus: drover.AllocClientRunning})
			p.add(exchange.AllocUpdate{ID: fmt.Sprint(i - 10), ClientStatus: drover.AllocClientComplete})
			clock.Sleep(t.Context(), clock.Wall{}, 2*time.Millisecond)
		}
		end := time.Now()
		clock.Sleep(t.Context(), clock.Wall{}, time.Second)
		require.Less(t, len(c.at), 10)
		require.Less(t, c.at[len(c.at)-1].Sub(end), 2*pushLull, "behind the last, nobody waits for more")

		p.know(
			&drover.Allocation{ID: "warm", TaskGroup: "g", Job: &drover.Job{TaskGroups: []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{}}}}},
		)
		for i := range n / 2 {
			p.add(exchange.AllocUpdate{ID: fmt.Sprint(i), ClientStatus: drover.AllocClientFailed})
		}
		clock.Sleep(t.Context(), clock.Wall{}, pushPace)
		before := len(c.at)
		p.add(exchange.AllocUpdate{ID: "warm", ClientStatus: drover.AllocClientRunning})
		synctest.Wait()
		require.Len(t, c.at, before+1, "claims may wait for it")
	})
}
