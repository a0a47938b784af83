package attention

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/tables"
)

// environments answers for each environment what its function says.
type environments map[string]func(ctx context.Context) (execution.PoolStatus, error)

func (e environments) Environments(context.Context, string) (out []execution.Environment, err error) {
	for _, id := range []string{"a", "b", "deleted"} {
		out = append(out, execution.Environment{ID: id})
	}
	return out, nil
}

func (e environments) PoolStatus(ctx context.Context, id string) (execution.PoolStatus, error) {
	return e[id](ctx)
}

// machines is a fleet with one pool and one machine, or with an error.
type machines struct{ err error }

func (m machines) Pools(context.Context) ([]fleet.PoolStatus, error) {
	return []fleet.PoolStatus{{}}, nil
}

func (m machines) Instances(context.Context, string) ([]fleet.Instance, error) {
	if m.err != nil {
		return nil, m.err
	}
	return []fleet.Instance{{Durable: fleet.Durable{ID: "m1"}}}, nil
}

// What is known of the planes is gathered. An environment that was deleted meanwhile is none; a plane that fails, or takes longer than two
// seconds, is unknown with the reason.
func TestFactsOfThePlanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := environments{
			"a": func(context.Context) (execution.PoolStatus, error) { return execution.PoolStatus{Warm: 3}, nil },
			"b": func(context.Context) (execution.PoolStatus, error) { return execution.PoolStatus{Warm: 1}, nil },
			"deleted": func(context.Context) (execution.PoolStatus, error) {
				return execution.PoolStatus{}, drover.Errorf(drover.NotFound, "gone")
			},
		}
		s := Sources{
			State: func() insight.State { return store.New().Snapshot() }, Environments: answers, Fleet: machines{}, Clock: clock.Wall{},
			Health: func() agent.AutopilotHealth {
				return agent.AutopilotHealth{
					Healthy: true, FailureTolerance: 1, Servers: []agent.ServerHealth{{ID: "1", Name: "s1", SerfStatus: "alive", Healthy: true}},
				}
			},
		}
		f := s.Facts(t.Context())
		require.Empty(t, f.Unknown)
		require.Equal(t, insight.Servers{
			Healthy: true, Tolerance: 1, List: []insight.Server{{ID: "1", Name: "s1", Status: "alive", Healthy: true}},
		}, f.Servers)
		require.Equal(t, []execution.PoolStatus{{Environment: "a", Warm: 3}, {Environment: "b", Warm: 1}}, f.Environments)
		require.Len(t, f.Pools, 1)
		require.Equal(t, "m1", f.Machines[0].ID)

		begun := time.Now()
		answers["b"] = func(ctx context.Context) (execution.PoolStatus, error) {
			<-ctx.Done()
			return execution.PoolStatus{}, ctx.Err()
		}
		s.Fleet = machines{errors.New("the cloud is away")}
		f = s.Facts(t.Context())
		require.Equal(t, patience, time.Since(begun))
		require.Equal(t, map[string]string{
			cluster.AreaEnvironments: context.DeadlineExceeded.Error(), cluster.AreaFleet: "the cloud is away",
		}, f.Unknown)
	})
}

// nodesState is a state that takes a tenth of a second to read.
type nodesState struct {
	index uint64
	read  *int
}

func (s nodesState) TableIndex(table string) uint64 {
	if table == tables.Nodes {
		return s.index
	}
	return 0
}

func (s nodesState) NodesUsed() iter.Seq2[*drover.Node, drover.Capacity] {
	return func(yield func(*drover.Node, drover.Capacity) bool) {
		*s.read++
		clock.Sleep(context.Background(), clock.Wall{}, 100*time.Millisecond)
		yield(&drover.Node{ID: "n"}, drover.Capacity{})
	}
}

func (nodesState) UnfinishedCount(string) int { return 0 }

// A picture serves all who ask until something changed, and for twenty times as long as it took to make.
func TestManyWhoLookCostOnePicture(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read, index := 0, uint64(7)
		all := NewTopology(func() insight.NodesState { return nodesState{index, &read} }, clock.Wall{})
		look := func() *cluster.Topology {
			out, err := all.Newest(t.Context())
			require.NoError(t, err)
			return out
		}
		require.EqualValues(t, 7, look().Index)
		time.Sleep(time.Hour) // of the bubble
		look()
		require.Equal(t, 1, read, "nothing changed")
		index = 8
		require.EqualValues(t, 8, look().Index)
		index = 9
		require.EqualValues(t, 8, look().Index, "one of the last moments does")
		time.Sleep(2 * time.Second) // of the bubble
		require.EqualValues(t, 9, look().Index)
		require.Equal(t, 3, read)
	})
}
