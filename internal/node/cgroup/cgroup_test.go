package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) {
	drivertest.SweepGroupParents()
	goleak.VerifyTestMain(m)
}

// fakeV2 makes a tree that looks like cgroup v2 with its usual controllers.
func fakeV2(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	fill(t, root, "cgroup.controllers", "cpuset cpu io memory pids")
	fill(t, root, "cgroup.subtree_control", "cpu memory pids cpuset")
	return root
}

func fill(t *testing.T, dir, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
}

func read(t *testing.T, dir, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	return string(data)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	info := Probe(fakeV2(t))
	require.Equal(t, V2, info.Version)
	require.Equal(t, []string{"cpuset", "cpu", "memory", "pids"}, info.Controllers)
	require.True(t, info.Has("memory"))
	require.False(t, info.Has("freezer"))

	v1 := t.TempDir()
	fill(t, filepath.Join(v1, "cpu,cpuacct"), "tasks", "")
	fill(t, filepath.Join(v1, "memory"), "tasks", "")
	fill(t, filepath.Join(v1, "unified"), "cgroup.procs", "")
	fill(t, filepath.Join(v1, "unified"), "cgroup.controllers", "hugetlb")
	info = Probe(v1)
	require.Equal(t, V1, info.Version)
	require.Equal(t, []string{"cpu", "cpuacct", "memory"}, info.Controllers)
	require.Equal(t, filepath.Join(v1, "unified"), info.tracking)

	info = Probe(t.TempDir())
	require.Equal(t, None, info.Version)
	require.NotEmpty(t, info.Reason)
	_, err := New(Config{Root: t.TempDir()})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

func TestLimitsOnV2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"memory.max", "memory.low", "pids.max", "cpu.weight", "cpu.max", "cpuset.cpus"} {
		fill(t, dir, f, "")
	}
	g := &Group{version: V2, dirs: []string{dir}, byCtl: map[string]string{"cpu": dir, "memory": dir, "pids": dir, "cpuset": dir}}
	require.NoError(t, g.Update(Limits{
		MemoryMax: 1 << 20, MemoryLow: 4096, Pids: 7, CPUShares: 1024, CPUQuota: 1.5, Cores: []uint16{0, 3},
	}))
	require.Equal(t, "1048576", read(t, dir, "memory.max"))
	require.Equal(t, "4096", read(t, dir, "memory.low"))
	require.Equal(t, "7", read(t, dir, "pids.max"))
	require.Equal(t, "39", read(t, dir, "cpu.weight"))
	require.Equal(t, "150000 100000", read(t, dir, "cpu.max"))
	require.Equal(t, "0,3", read(t, dir, "cpuset.cpus"))
}

func TestUsageOnV2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, "cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_throttled 2\nthrottled_usec 5\n")
	fill(t, dir, "memory.stat", "anon 100\nfile 50\nshmem 10\nfile_mapped 7\ninactive_file 30\n")
	fill(t, dir, "memory.current", "160\n")
	fill(t, dir, "memory.peak", "200\n")
	fill(t, dir, "memory.events", "low 0\noom 3\noom_kill 2\n")
	g := &Group{version: V2, dirs: []string{dir}}
	u, err := g.Usage()
	require.NoError(t, err)
	require.Equal(t, Usage{
		CPUTotal: 30 * time.Microsecond, CPUUser: 20 * time.Microsecond, CPUSystem: 10 * time.Microsecond,
		Throttled: 2, ThrottledTime: 5 * time.Microsecond,
		Memory: 120, MemoryRaw: 160, MemoryPeak: 200, RSS: 100, Cache: 50, MappedFile: 7,
	}, u)
	require.Equal(t, uint64(2), g.OOMKills())
	g.dirs[0] = filepath.Join(dir, "gone")
	_, err = g.Usage()
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestUsageOnV1: cache is told apart, and cpu.stat is read only where something can be throttled, which may change.
func TestUsageOnV1(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, "cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 5\n")
	fill(t, dir, "cpu.cfs_quota_us", "-1\n")
	fill(t, dir, "cpuacct.usage_user", "20\n")
	fill(t, dir, "cpuacct.usage_sys", "10\n")
	fill(t, dir, "memory.stat", "cache 1\nrss 1\ntotal_cache 50\ntotal_rss 100\ntotal_shmem 10\ntotal_mapped_file 7\ntotal_swap 3\n")
	fill(t, dir, "memory.usage_in_bytes", "160\n")
	fill(t, dir, "memory.max_usage_in_bytes", "200\n")
	g := &Group{version: V1, dirs: []string{dir}, byCtl: map[string]string{"cpu": dir, "cpuacct": dir, "memory": dir}}
	want := Usage{
		CPUTotal: 30, CPUUser: 20, CPUSystem: 10, Memory: 120, MemoryRaw: 160, MemoryPeak: 200, RSS: 100, Cache: 50, MappedFile: 7, Swap: 3,
	}
	u, err := g.Usage()
	require.NoError(t, err)
	require.Equal(t, want, u)
	fill(t, dir, "cpu.cfs_quota_us", "50000\n")
	for range lookEvery {
		u, err = g.Usage()
		require.NoError(t, err)
	}
	want.Throttled, want.ThrottledTime = 2, 5
	require.Equal(t, want, u)
}

func TestWeights(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(1), cpuWeight(0))
	require.Equal(t, int64(1), cpuWeight(2))
	require.Equal(t, int64(10000), cpuWeight(1<<20))
	require.Equal(t, int64(1000), cpuQuota(0.0001))
}

func TestNamesCannotLeaveTheParent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "..", "a/b", "supervisors", "x\ny", ".hidden"} {
		require.Equal(t, drover.Invalid, drover.CodeOf(checkName(name)), "%q", name)
	}
	require.NoError(t, checkName("4e1f.web"))
}

// realTrees are the machine's own: the tests need root, as CI has it. The empty v2 tree of a hybrid stands for v2 where
// controllers do not matter.
func realTrees(t *testing.T) map[string]*Groups {
	t.Helper()
	sharetest.Take(t)
	trees := map[string]*Groups{}
	parent := drivertest.GroupParent(t)
	for name, root := range map[string]string{"main": "/sys/fs/cgroup", "unified": "/sys/fs/cgroup/unified"} {
		if Probe(root).Version == None {
			continue
		}
		m, err := New(Config{Root: root, Parent: parent})
		require.NoError(t, err)
		trees[name] = m
		t.Cleanup(func() { m.removeParent(t) })
	}
	require.NotEmpty(t, trees, "no cgroup tree on this machine")
	return trees
}

func (m *Groups) removeParent(t *testing.T) {
	t.Helper()
	for _, root := range append(m.trees(append(m.info.Controllers, "")...), m.info.tracking) {
		if root == "" {
			continue
		}
		walk(filepath.Join(root, m.parent), func(d string) {
			if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left behind: %v", err)
			}
		})
	}
}

// add puts a process into the group as drivers do: on v2, where a group whose children have controllers takes none, into
// a child.
func add(t *testing.T, g *Group, pid int) {
	t.Helper()
	if g.version == V2 && g.parent == nil {
		child, err := g.Child("main", Limits{}, 0)
		require.NoError(t, err)
		g = child
	}
	require.NoError(t, place(g.Dirs(), pid))
}

// inGroup starts a shell that joins the group before it runs the script.
func inGroup(t *testing.T, g *Group, script string) *exec.Cmd {
	t.Helper()
	c := exec.Command("/bin/sh", "-c", "read go; "+script)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	add(t, g, c.Process.Pid)
	_, err = in.Write([]byte("go\n"))
	require.NoError(t, err)
	return c
}

func TestLifeOfAGroup(t *testing.T) {
	t.Parallel()
	for name, m := range realTrees(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			g, err := m.Create("life", Limits{MemoryMax: 64 << 20, Pids: 20, CPUShares: 200}, 0)
			require.NoError(t, err)
			again, err := m.Open("life")
			require.NoError(t, err)
			require.Equal(t, g.Dirs()[0], again.Dirs()[0])

			// Children that leave their parent and session are members all the same.
			c := inGroup(t, g, "setsid sleep 300 & (setsid sleep 300 &) ; sleep 300")
			require.Eventually(t, func() bool { p, err := g.Procs(); return err == nil && len(p) >= 4 }, time.Minute, time.Millisecond)
			names, err := m.List()
			require.NoError(t, err)
			require.Equal(t, []string{"life"}, names)
			require.NoError(t, g.Kill())
			require.Error(t, c.Wait())
			require.NoError(t, g.Remove(ctx, clock.Wall{}))
			require.NoError(t, g.Remove(ctx, clock.Wall{}), "idempotent")
			_, err = m.Open("life")
			require.Equal(t, drover.NotFound, drover.CodeOf(err))
		})
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	for name, m := range realTrees(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost, err := m.Create("lost", Limits{}, 0)
			require.NoError(t, err)
			c := inGroup(t, lost, "sleep 300 & sleep 300")
			kept, err := m.Create("kept", Limits{}, 0)
			require.NoError(t, err)
			swept, err := m.Sweep(t.Context(), clock.Wall{}, func(name string) bool { return name == "kept" })
			require.NoError(t, err)
			require.Equal(t, []string{"lost"}, swept)
			require.Error(t, c.Wait())
			require.NoError(t, kept.Remove(t.Context(), clock.Wall{}))
		})
	}
}

func TestRemoveKillsWhatForks(t *testing.T) {
	t.Parallel()
	for name, m := range realTrees(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			g, err := m.Create("bomb", Limits{Pids: 30}, 0)
			require.NoError(t, err)
			c := inGroup(t, g, "i=0; while [ $i -lt 20 ]; do (while :; do /bin/true; done) & i=$((i+1)); done; wait")
			require.Eventually(t, func() bool { p, err := g.Procs(); return err == nil && len(p) > 10 }, time.Minute, time.Millisecond)
			require.NoError(t, g.Remove(ctx, clock.Wall{}))
			require.Error(t, c.Wait())
		})
	}
}

func TestChildGroups(t *testing.T) {
	t.Parallel()
	for name, m := range realTrees(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			g, err := m.Create("outer", Limits{Pids: 50}, 0)
			require.NoError(t, err)
			x, err := g.Child("x.1", Limits{MemoryMax: 32 << 20, Pids: 5}, 0)
			require.NoError(t, err)
			c := inGroup(t, x, "sleep 300 & sleep 300")
			require.Eventually(t, func() bool { p, err := x.Procs(); return err == nil && len(p) == 3 }, time.Minute, time.Millisecond)
			all, err := g.Procs()
			require.NoError(t, err)
			require.Len(t, all, 3, "a child's members are the group's too")
			found, err := g.FindChild("x.1")
			require.NoError(t, err)
			require.ElementsMatch(t, x.Dirs(), found.Dirs())
			_, err = g.FindChild("x.2")
			require.Equal(t, drover.NotFound, drover.CodeOf(err))
			require.NoError(t, found.Remove(ctx, clock.Wall{}))
			require.Error(t, c.Wait())
			require.NoError(t, g.Remove(ctx, clock.Wall{}))
		})
	}
}

func TestLimitsGrowAndShrink(t *testing.T) {
	t.Parallel()
	m := realTrees(t)["main"]
	g, err := m.Create("resized", Limits{MemoryMax: 64 << 20}, 0)
	require.NoError(t, err)
	for _, mb := range []int64{128, 16, 256} {
		require.NoError(t, g.Update(Limits{MemoryMax: mb << 20}))
		for _, file := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max"} {
			if _, err := os.Stat(filepath.Join(g.Dir("memory"), file)); err == nil {
				require.Equal(t, itoa(mb<<20)+"\n", read(t, g.Dir("memory"), file), file)
			}
		}
	}
	require.NoError(t, g.Remove(t.Context(), clock.Wall{}))
}

func TestOutOfMemoryIsCounted(t *testing.T) {
	t.Parallel()
	m := realTrees(t)["main"]
	require.True(t, m.Info().Has("memory"), "the machine has no memory controller")
	g, err := m.Create("oom", Limits{MemoryMax: 16 << 20}, 0)
	require.NoError(t, err)
	x, err := g.Child("x", Limits{}, 0)
	require.NoError(t, err)
	c := inGroup(t, g, "exec tail /dev/zero")
	require.Error(t, c.Wait())
	require.Equal(t, uint64(1), g.OOMKills())
	byParent := map[Version]uint64{V1: 1, V2: 0} // v1: counted in the parent; v2: each for itself
	require.Equal(t, byParent[m.Info().Version], x.OOMKills())
	again, err := g.FindChild("x")
	require.NoError(t, err)
	require.Equal(t, byParent[m.Info().Version], again.OOMKills(), "who finds it later knows as much")
	_, err = x.Renamed("z")
	require.Error(t, err, "what was counted is not the next one's")
	y, err := g.Child("y", Limits{}, 0)
	require.NoError(t, err)
	require.Zero(t, y.OOMKills(), "it counts its own")
	c = inGroup(t, y, "exec tail /dev/zero")
	require.Error(t, c.Wait())
	again, err = g.FindChild("y")
	require.NoError(t, err)
	require.Equal(t, uint64(1), again.OOMKills())
	require.Equal(t, uint64(2), g.OOMKills())
	require.Equal(t, byParent[m.Info().Version], x.OOMKills(), "and no other's")
	u, err := g.Usage()
	require.NoError(t, err)
	require.InDelta(t, 16<<20, u.MemoryPeak, 1<<20)
	require.Positive(t, u.CPUTotal)
	require.NoError(t, g.Remove(t.Context(), clock.Wall{}))
}

// TestParentsAreShared: of several agents with the same parent the last one removes it.
func TestParentsAreShared(t *testing.T) {
	t.Parallel()
	for name, m := range realTrees(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := m.parent + "-" + name
			first, other := &Groups{info: m.info, parent: own}, &Groups{info: m.info, parent: own}
			require.NoError(t, first.prepare())
			require.NoError(t, other.prepare())
			require.NoError(t, first.Close(clock.Wall{}))
			g, err := other.Create("task", Limits{}, 0)
			require.NoError(t, err)
			fds, err := g.OpenInit()
			require.NoError(t, err)
			for _, fd := range fds {
				require.NoError(t, unix.Close(fd))
			}
			require.Error(t, other.Close(clock.Wall{}), "it is in use")
			require.NoError(t, g.Remove(t.Context(), clock.Wall{}))
			require.NoError(t, other.Close(clock.Wall{}))
			require.NoDirExists(t, other.lockDir())
		})
	}
}

// TestParentsComeAndGo: no agent ever has its parent removed by another that ends.
func TestParentsComeAndGo(t *testing.T) {
	t.Parallel()
	for name, m := range realTrees(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := &Groups{info: m.info, parent: m.parent + "-" + name}
			var agents sync.WaitGroup
			for range 4 {
				agents.Go(func() {
					for range 25 {
						own := &Groups{info: first.info, parent: first.parent}
						if assert.NoError(t, own.prepare()) {
							assert.DirExists(t, filepath.Join(own.lockDir(), supervisors))
							assert.NoError(t, own.Close(clock.Wall{}))
						}
					}
				})
			}
			agents.Wait()
			require.NoDirExists(t, first.lockDir())
		})
	}
}

func TestAGroupWithoutStatisticsIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &Group{version: V1, dirs: []string{dir}, byCtl: map[string]string{"pids": dir}}
	u, err := g.Usage()
	require.NoError(t, err)
	require.Zero(t, u)
	g.dirs[0] = filepath.Join(dir, "gone")
	_, err = g.Usage()
	require.ErrorIs(t, err, os.ErrNotExist)
}
