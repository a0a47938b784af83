package sampler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/usage"
)

// sampledNode counts how often it is asked, and takes a while.
type sampledNode struct {
	exchange.Workloads
	asked chan string
	takes time.Duration
}

func (n sampledNode) AllocStats(ctx context.Context, id, _ string) (*usage.AllocResourceUsage, error) {
	n.asked <- id
	select {
	case <-time.After(n.takes):
		return &usage.AllocResourceUsage{Timestamp: time.Now().UnixNano()}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSamplesOfManyAllocations: however many ask, each allocation is sampled once in a while. A node that is slow or away, and
// what does not run or is not for the viewer, are told as missing, in time.
func TestSamplesOfManyAllocations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string, 1000)
		nodes := map[string]exchange.Workloads{"quick": sampledNode{asked: asked, takes: time.Millisecond}, "slow": sampledNode{
			asked: asked, takes: time.Hour,
		}}
		s := New(func(id string) *drover.Allocation {
			one := &drover.Allocation{ID: id, NodeID: "quick", Namespace: "team", ClientStatus: drover.AllocClientRunning}
			switch id {
			case "none":
				return nil
			case "slow", "away":
				one.NodeID = id
			case "hidden":
				one.Namespace = "other"
			case "ended":
				one.ClientStatus = drover.AllocClientComplete
			}
			return one
		}, func(id string) (exchange.Workloads, error) {
			if w := nodes[id]; w != nil {
				return w, nil
			}
			return nil, drover.Errorf(drover.Unavailable, "node %s is not connected", id)
		}, clock.Wall{})
		sees := func(namespace string) bool { return namespace == "team" }
		ids := []string{"slow", "away", "none", "hidden", "ended"}
		for i := range 90 {
			ids = append(ids, fmt.Sprint(i))
		}
		begun := time.Now()
		got := s.Batch(t.Context(), ids, sees)
		require.LessOrEqual(t, time.Since(begun), samplePatience+time.Second)
		require.Len(t, got.Allocations, 90)
		require.Len(t, got.Missing, 5)
		for id, why := range map[string]string{
			"slow": "deadline", "away": "not connected", "none": "no such", "hidden": "no such", "ended": "it is complete",
		} {
			require.Contains(t, got.Missing[id], why)
		}
		require.Len(t, asked, 91)
		again := s.Batch(t.Context(), []string{"1", "2"}, sees)
		require.Len(t, again.Allocations, 2)
		require.Len(t, asked, 93, "the first samples are %v old", time.Since(begun))
		_ = s.Batch(t.Context(), []string{"1", "2"}, sees)
		require.Len(t, asked, 93, "they were sampled just now")
		time.Sleep(sampleLasts)
		_ = s.Batch(t.Context(), []string{"1", "2"}, sees)
		require.Len(t, asked, 95)
		var many sync.WaitGroup
		told := make([]usage.Samples, 20)
		for i := range told {
			many.Go(func() { told[i] = s.Batch(t.Context(), []string{"slow", "3"}, sees) })
		}
		many.Wait()
		for _, one := range told {
			require.Len(t, one.Allocations, 1)
			require.Contains(t, one.Missing["slow"], "deadline")
		}
		require.Len(t, asked, 97, "who asks at once gets the same sample, and waits for the same node")
	})
}
