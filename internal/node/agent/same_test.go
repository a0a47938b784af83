package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/driver"
)

// brief is a control that tells an allocation once in each version.
type brief struct {
	*control
	mu    sync.Mutex                    // guards what follows
	told  map[string]*drover.Allocation // in its newest answer
	n     int
	asked []string // which answer the node had
	wrong string   // an id that it says the node has
	deaf  bool     // reports are lost
	lost  []string // the statuses in them
}

func (c *brief) Push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deaf {
		return c.control.Push(ctx, nodeID, updates)
	}
	for _, u := range updates {
		c.lost = append(c.lost, u.ClientStatus)
	}
	return nil
}

func (c *brief) Pull(ctx context.Context, nodeID string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	a, err := c.control.Pull(ctx, nodeID, seen, maxWait)
	if err != nil {
		return a, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, seen.Answer)
	if seen.Answer != fmt.Sprint("answer ", c.n) || c.n == 0 {
		c.told = nil
	}
	all, told := a.Allocs, map[string]*drover.Allocation{}
	a.Allocs = nil
	for _, x := range all {
		if told[x.ID] = x; c.told[x.ID] == x {
			a.Same = append(a.Same, x.ID)
		} else {
			a.Allocs = append(a.Allocs, x)
		}
	}
	if c.wrong != "" && c.told != nil {
		a.Same = append(a.Same, c.wrong)
	}
	c.n++
	c.told, a.Answer = told, fmt.Sprint("answer ", c.n)
	return a, nil
}

// What control does not tell again goes on; what it does not name ends.
func TestAnAllocationThatDidNotChangeGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		c := &brief{control: b.control}
		b.signs = c
		b.start()
		first, second := b.alloc(1, drover.JobTypeService), b.alloc(2, drover.JobTypeService)
		c.assign(first)
		sleep(time.Second)
		c.assign(second)
		sleep(time.Second)
		c.assign() // nothing changed but the index
		sleep(time.Second)
		require.Contains(t, c.told, first.ID)
		require.Equal(t, drover.AllocClientRunning, c.alloc(first.ID).ClientStatus)
		require.Equal(t, drover.AllocClientRunning, c.alloc(second.ID).ClientStatus)
		c.drop(first.ID)
		sleep(time.Second)
		require.Nil(t, b.world.Running("t1"))
		require.NotNil(t, b.world.Running("t2"))
		require.NotContains(t, c.asked[1:], "", "nothing had to be told anew")
	})
}

// A node that lacks what it is said to have asks for all, and ends nothing because of it.
func TestANodeThatLacksWhatItIsSaidToHaveAsksForAll(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		c := &brief{control: b.control}
		b.signs = c
		b.start()
		first := b.alloc(1, drover.JobTypeService)
		c.assign(first)
		sleep(time.Second)
		c.mu.Lock()
		c.wrong = "nobody knows this one"
		asked := len(c.asked)
		c.mu.Unlock()
		second := b.alloc(2, drover.JobTypeService)
		c.assign(second)
		sleep(time.Second)
		require.Equal(t, drover.AllocClientRunning, c.alloc(first.ID).ClientStatus)
		require.Equal(t, drover.AllocClientRunning, c.alloc(second.ID).ClientStatus, "it is told when all is asked")
		require.Contains(t, c.asked[asked:], "")
	})
}

// What has ended is said again while control still wants it: it did not hear it.
func TestAnEndIsSaidAgainWhileControlDoesNotKnowIt(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		c := &brief{control: b.control}
		b.signs = c
		b.start()
		first := b.alloc(1, drover.JobTypeBatch)
		c.assign(first)
		sleep(time.Second)
		c.mu.Lock()
		c.deaf = true
		c.mu.Unlock()
		b.world.Running("t1").End(driver.Exit{})
		sleep(time.Second)
		require.Equal(t, []string{drover.AllocClientComplete}, c.lost)
		c.assign() // it is named as one that did not change
		sleep(time.Second)
		require.Equal(t, []string{drover.AllocClientComplete, drover.AllocClientComplete}, c.lost)
		require.NotContains(t, c.asked[1:], "")
	})
}
