package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/flock"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// onV1 is a manager of the machine's v1 trees, with a parent of its own.
func onV1(t *testing.T) *Groups {
	t.Helper()
	if v := Probe("/sys/fs/cgroup").Version; v != V1 {
		t.Skipf("only v1 renames groups, here is %s", v)
	}
	m := realTrees(t)["main"]
	require.Empty(t, m.spareNames(t))
	return m
}

// spareNames lists the spares in the tree of pids.
func (m *Groups) spareNames(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(m.info.mounts["pids"], m.parent, sparePrefix+"*"))
	require.NoError(t, err)
	return found
}

// patient is a clock on which no spare gets old.
type patient struct{ clock.Wall }

func (patient) AfterFunc(time.Duration, func()) clock.Timer { return clock.Wall{}.NewTimer(time.Hour) }

var usualLimits = Limits{MemoryMax: 64 << 20, MemoryLow: 16 << 20, Pids: 20, CPUShares: 200} // a constant

func TestAGroupServesTheNextTask(t *testing.T) {
	t.Parallel()
	m := onV1(t)
	first, err := m.Create("first", usualLimits, 0)
	require.NoError(t, err)
	for name, limits := range map[string]Limits{"x": {}, "limited": {Pids: 3}, "more": {CPUShares: 100}} {
		_, err = first.Child(name, limits, 0)
		require.NoError(t, err)
	}
	require.NoError(t, inGroup(t, first, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").Wait())
	before, err := first.Usage()
	require.NoError(t, err)
	require.Positive(t, before.CPUTotal)
	require.Positive(t, before.MemoryPeak)

	require.NoError(t, m.Retire(t.Context(), patient{}, first))
	require.Len(t, m.spareNames(t), 1)
	names, err := m.List()
	require.NoError(t, err)
	require.Empty(t, names, "it is nobody's")
	_, err = first.Usage()
	require.Error(t, err, "who still asks for the first hears nothing of others")
	require.NoError(t, m.Retire(t.Context(), patient{}, first), "idempotent")

	other, err := m.Create("other", Limits{MemoryMax: 32 << 20, Pids: 20}, 0)
	require.NoError(t, err)
	require.Len(t, m.spareNames(t), 1, "its limits are not these")
	second, err := m.Create("second", usualLimits, 0)
	require.NoError(t, err)
	require.Empty(t, m.spareNames(t))
	require.Equal(t, "second", second.Name())
	require.Equal(t, "67108864\n", read(t, second.Dir("memory"), "memory.limit_in_bytes"))
	require.Equal(t, "20\n", read(t, second.Dir("pids"), "pids.max"))
	limited, err := second.Child("a", Limits{Pids: 5}, 0)
	require.NoError(t, err)
	require.Equal(t, "5\n", read(t, limited.Dir("pids"), "pids.max"))
	kept, err := second.Child("b", Limits{}, 0)
	require.NoError(t, err)
	require.Equal(t, "max\n", read(t, kept.Dir("pids"), "pids.max"))
	next, err := second.Child("c", Limits{}, 0)
	require.NoError(t, err)
	require.DirExists(t, next.Dir("pids"))
	children, err := filepath.Glob(filepath.Join(second.Dir("pids"), "*", "pids.max"))
	require.NoError(t, err)
	require.Len(t, children, 3, "one was handed over")
	u, err := second.Usage()
	require.NoError(t, err)
	require.Zero(t, u.CPUTotal)
	require.LessOrEqual(t, u.MemoryPeak, int64(leftMemory))
	again, err := m.Open("second")
	require.NoError(t, err)
	require.NoError(t, m.Retire(t.Context(), patient{}, again), "what an earlier agent made is removed")
	require.NoError(t, m.Retire(t.Context(), patient{}, other))
	require.Len(t, m.spareNames(t), 1)
	late, err := m.Create("late", Limits{}, 0)
	require.NoError(t, err)
	require.Error(t, m.Close(clock.Wall{}), "it is in use")
	require.Empty(t, m.spareNames(t))
	require.NoError(t, m.Retire(t.Context(), patient{}, late))
	require.NoError(t, m.Close(clock.Wall{}))
	require.NoDirExists(t, m.lockDir())
}

func TestWhatIsNotAsNewServesNobody(t *testing.T) {
	t.Parallel()
	m := onV1(t)
	for name, spoil := range map[string]func(t *testing.T, g *Group){
		"it was killed":       func(t *testing.T, g *Group) { require.NoError(t, g.Kill()) },
		"it has other limits": func(t *testing.T, g *Group) { require.NoError(t, g.Update(Limits{Pids: 7})) },
		"something runs in it": func(t *testing.T, g *Group) {
			c := inGroup(t, g, "exec sleep 300")
			t.Cleanup(func() { require.Error(t, c.Wait()) })
		},
		"something ran out of it": func(t *testing.T, g *Group) { require.Error(t, inGroup(t, g, "exec tail /dev/zero").Wait()) },
	} {
		t.Run(name, func(t *testing.T) {
			g, err := m.Create("task", usualLimits, 0)
			require.NoError(t, err)
			spoil(t, g)
			require.NoError(t, m.Retire(t.Context(), patient{}, g))
			require.Empty(t, m.spareNames(t))
			require.Empty(t, g.existing())
		})
	}
}

// TestSparesGoWhenNobodyWantsThem: on fake trees, which have no more than folders.
func TestSparesGoWhenNobodyWantsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s spares
		dirs := make([]string, 2)
		for i := range dirs {
			dirs[i] = filepath.Join(t.TempDir(), "spare")
			require.NoError(t, os.Mkdir(dirs[i], 0o700))
			require.Nil(t, s.keep(&Group{tops: dirs[i : i+1]}, clock.Wall{}))
			time.Sleep(spareFor / 2) // in the bubble's time
		}
		synctest.Wait()
		require.NoDirExists(t, dirs[0])
		require.DirExists(t, dirs[1])
		time.Sleep(spareFor / 2)
		synctest.Wait()
		require.NoDirExists(t, dirs[1])
	})
}

func TestSparesAreFew(t *testing.T) {
	t.Parallel()
	m := onV1(t)
	made := make([]*Group, maxSpares+2)
	for i := range made {
		var err error
		made[i], err = m.Create(fmt.Sprintf("t%d", i), Limits{Pids: int64(i + 1)}, 0)
		require.NoError(t, err)
	}
	for _, g := range made {
		require.NoError(t, m.Retire(t.Context(), patient{}, g))
	}
	require.Len(t, m.spareNames(t), maxSpares)
	require.Nil(t, m.spares.take(Limits{Pids: 2}), "the oldest went")
	require.NoError(t, m.Close(clock.Wall{}))
}

// TestSparesOfAKilledAgent: the next agent removes them, unless others may be using theirs.
func TestSparesOfAKilledAgent(t *testing.T) {
	t.Parallel()
	onV1(t)
	parent := drivertest.GroupParent(t) + "-killed"
	killed, err := New(Config{Parent: parent})
	require.NoError(t, err)
	g, err := killed.Create("task", usualLimits, 0)
	require.NoError(t, err)
	require.NoError(t, killed.Retire(t.Context(), patient{}, g))
	beside, err := New(Config{Parent: parent})
	require.NoError(t, err)
	require.Len(t, beside.spareNames(t), 1)
	require.NoError(t, beside.Close(clock.Wall{}))
	require.NoError(t, flock.Close(killed.held)) // as its end does

	next, err := New(Config{Parent: parent})
	require.NoError(t, err)
	require.Empty(t, next.spareNames(t))
	require.NoError(t, next.Close(clock.Wall{}))
	_, err = os.Stat(next.lockDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}
