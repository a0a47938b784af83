package evalbroker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

func blocked(id, job string, snapshot uint64) *drover.Evaluation {
	e := eval(id, job, 50, snapshot)
	e.Status, e.SnapshotIndex = drover.EvalBlocked, snapshot
	e.ClassEligibility = map[string]bool{"good": true, "bad": false}
	return e
}

func rooms(free map[string]int64) Room {
	return func(nodeID string) (drover.Capacity, bool) {
		c, ok := free[nodeID]
		return drover.Capacity{CPU: c}, ok
	}
}

func ids(evals []*drover.Evaluation) []string {
	var out []string
	for _, e := range evals {
		out = append(out, e.ID)
	}
	return out
}

func TestBlockedWakesByClass(t *testing.T) {
	t.Parallel()
	for class, wakes := range map[string]bool{"good": true, "bad": false, "unknown": true} {
		b := NewBlocked()
		b.Block(blocked("1", "j", 5), drover.Capacity{})
		b.Freed("n", class, 6)
		require.Equal(t, wakes, len(b.Wake(rooms(map[string]int64{"n": 1}), nil)) == 1, class)
	}
	b := NewBlocked()
	e := blocked("1", "j", 5)
	e.EscapedComputedClass = true
	b.Block(e, drover.Capacity{})
	b.Freed("n", "bad", 6)
	require.Len(t, b.Wake(rooms(map[string]int64{"n": 1}), nil), 1)
}

func TestBlockedMissesNothing(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	b.Freed("n", "good", 6) // between the snapshot and the blocking
	b.Block(blocked("1", "j", 5), drover.Capacity{})
	b.Block(blocked("2", "k", 6), drover.Capacity{}) // has seen it
	require.Equal(t, []string{"1"}, ids(b.Wake(rooms(map[string]int64{"n": 1}), nil)))
	b.SetFloor(9)
	b.Block(blocked("3", "l", 8), drover.Capacity{})
	require.Equal(t, []string{"3"}, ids(b.Wake(rooms(nil), nil)), "what was before this leader is not known")
}

func TestBlockedWakesOnlyWhomItHelps(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	b.Block(blocked("big", "a", 1), drover.Capacity{CPU: 10})
	b.Block(blocked("s1", "b", 2), drover.Capacity{CPU: 2})
	b.Block(blocked("s2", "c", 3), drover.Capacity{CPU: 2})
	b.Block(blocked("s3", "d", 4), drover.Capacity{CPU: 2})
	b.Freed("n", "good", 5)
	room := rooms(map[string]int64{"n": 5})
	require.Equal(t, []string{"s1", "s2"}, ids(b.Wake(room, nil)), "there is room for two")
	require.Empty(t, b.Wake(room, nil))
	require.True(t, b.Finished("s1")) // it did not use it
	require.Equal(t, []string{"s3"}, ids(b.Wake(room, nil)))
	b.Freed("n", "good", 6)
	b.Finished("s2")
	b.Finished("s3")
	require.Equal(t, []string{"big"}, ids(b.Wake(rooms(map[string]int64{"n": 10}), nil)))
}

// What evicted on two nodes is woken by the first that is free. The second becomes free while it is out: the evicted
// job's evaluation used to be woken for that, and to place again what had just been evicted, for good.
func TestBlockedLeavesRoomToAHigherPriorityThatIsOut(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	high, low := blocked("high", "a", 1), blocked("low", "b", 2)
	high.Priority, low.Priority = 90, 10
	b.Block(high, drover.Capacity{CPU: 6})
	b.Block(low, drover.Capacity{CPU: 6})
	room := map[string]int64{"n1": 10}
	b.Freed("n1", "good", 5)
	require.Equal(t, []string{"high"}, ids(b.Wake(rooms(room), nil)))
	room["n2"] = 10
	b.Freed("n2", "good", 6)
	require.Empty(t, b.Wake(rooms(room), nil))

	room["n1"] = 4 // it placed there, and is blocked again
	again := *high
	again.SnapshotIndex = 5
	b.Block(&again, drover.Capacity{CPU: 6})
	require.Equal(t, []string{"high"}, ids(b.Wake(rooms(room), nil)))
	room["n2"] = 4
	require.True(t, b.Finished("high"))
	require.Empty(t, b.Wake(rooms(room), nil))
	b.Freed("n2", "good", 8)
	room["n2"] = 20
	require.Equal(t, []string{"low"}, ids(b.Wake(rooms(room), nil)))

	b.Block(high, drover.Capacity{CPU: 6}) // where there is room for both, nobody waits
	room["n1"] = 12
	b.Freed("n1", "good", 9)
	require.Equal(t, []string{"high"}, ids(b.Wake(rooms(room), nil)))
	b.Block(low, drover.Capacity{CPU: 6})
	b.Freed("n1", "good", 10)
	require.Equal(t, []string{"low"}, ids(b.Wake(rooms(room), nil)))
}

// A worker commits its evaluation as blocked before it says that it is through with it. The evaluation may be woken in
// between; it used to be charged twice then and discharged once, so that others never saw the room.
func TestBlockedWokenBeforeItIsFinishedIsChargedOnce(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	free := rooms(map[string]int64{"n": 10})
	b.Block(blocked("1", "j", 1), drover.Capacity{CPU: 6})
	b.Freed("n", "good", 2)
	require.Equal(t, []string{"1"}, ids(b.Wake(free, nil)))
	b.Freed("n", "good", 3)
	b.Block(blocked("1", "j", 2), drover.Capacity{CPU: 6})
	require.Equal(t, []string{"1"}, ids(b.Wake(free, nil)))
	b.Finished("1")
	b.Block(blocked("2", "k", 3), drover.Capacity{CPU: 10})
	b.Freed("n", "good", 4)
	require.Equal(t, []string{"2"}, ids(b.Wake(free, nil)))
}

// One that was woken and then cancelled, since a newer one of its job waits behind the same worker, is never finished.
func TestBlockedCancelledAfterItWasWokenGivesTheRoomBack(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	free := rooms(map[string]int64{"n": 10})
	b.Block(blocked("1", "j", 1), drover.Capacity{CPU: 6})
	b.Block(blocked("2", "k", 1), drover.Capacity{CPU: 10})
	b.Freed("n", "good", 2)
	require.Equal(t, []string{"1"}, ids(b.Wake(free, nil)))
	require.True(t, b.Remove("1"))
	require.Equal(t, []string{"2"}, ids(b.Wake(free, nil)))
}

func TestBlockedKeepsTheNewestOfAJob(t *testing.T) {
	t.Parallel()
	b := NewBlocked()
	b.Block(blocked("1", "j", 1), drover.Capacity{})
	b.Block(blocked("2", "j", 2), drover.Capacity{})
	require.Equal(t, []string{"1"}, ids(b.Duplicates()))
	b.Untrack(drover.NamespacedID{Namespace: "default", ID: "j"})
	require.Equal(t, []string{"2"}, ids(b.Duplicates()))
	all, _ := b.Len()
	require.Zero(t, all)
}

// TestBlockedNeverStrands: once all who were woken are finished, nobody is blocked who fits on a node of which
// something became free after its snapshot.
func TestBlockedNeverStrands(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := NewBlocked()
		free := map[string]int64{}
		asks, woken := map[string]drover.Capacity{}, map[string]bool{}
		freedAt := map[string]uint64{}
		index := uint64(1)
		state := map[string]*drover.Evaluation{}
		wake := func() {
			for _, e := range b.Wake(rooms(free), nil) {
				woken[e.ID] = true
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			index++
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				id := fmt.Sprint(rapid.IntRange(0, 6).Draw(rt, "eval"))
				if _, in := state[id]; in {
					continue
				}
				e := blocked(id, id, index-uint64(rapid.IntRange(0, 2).Draw(rt, "late")))
				state[id], asks[id] = e, drover.Capacity{CPU: rapid.Int64Range(0, 6).Draw(rt, "ask")}
				b.Block(e, asks[id])
			case 1:
				n := fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "node"))
				free[n] += rapid.Int64Range(0, 4).Draw(rt, "more")
				freedAt[n] = index
				b.Freed(n, "good", index)
			case 2: // the scheduler looks at a woken one, and may use room
				for id := range woken {
					for n := range free {
						if asks[id].CPU <= free[n] && rapid.Bool().Draw(rt, "use") {
							free[n] -= asks[id].CPU
							break
						}
					}
					delete(woken, id)
					delete(state, id)
					b.Finished(id)
					break
				}
			}
			wake()
		}
		for len(woken) > 0 {
			for id := range woken {
				delete(woken, id)
				delete(state, id)
				b.Finished(id)
			}
			wake()
		}
		for id, e := range state {
			for n, at := range freedAt {
				if at > e.SnapshotIndex && asks[id].CPU <= free[n] {
					rt.Fatalf("evaluation %s asks %d and is blocked at %d; node %s has %d since %d", id, asks[id].CPU, e.SnapshotIndex, n, free[n], at)
				}
			}
		}
	})
}
