package process

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// TestAKillReachesWhatHides: children, those in sessions of their own, and orphans of these, known by the mark.
func TestAKillReachesWhatHides(t *testing.T) {
	t.Parallel()
	const mark = MarkKey + "=hides"
	p := start(t, true, []string{mark}, "/bin/sh", "-c",
		`setsid sh -c 'echo $$; sh -c "echo \$\$; exec sleep 1000" & exec sleep 1000' &
		sh -c 'setsid sh -c "echo \$\$; exec sleep 1000" &'; wait; read x`)
	var pids []int
	for range 3 {
		pid, err := strconv.Atoi(p.line(t))
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	other := start(t, true, []string{MarkKey + "=other"}, "/bin/sh", "-c", "echo ready; read x; exit 7")
	require.Equal(t, "ready", other.line(t))
	tree := NewTree(nil)
	tree.Leader, tree.Mark = p.Pid, mark
	require.False(t, tree.Grouped())
	running := tree.Running(reaping)
	for _, pid := range append(pids, p.Pid) {
		require.Contains(t, running, pid)
	}
	require.NotContains(t, running, other.Pid)
	tree.Kill(reaping, clock.Wall{})
	p.wait(t)
	for _, pid := range pids {
		gone(t, pid)
	}
	require.Empty(t, tree.Running(reaping))
	require.NoError(t, other.in.Close())
	other.wait(t)
	require.Equal(t, 7, other.Status.ExitStatus(), "another's are left alone")
}

// TestWhatJustStartedIsNoOrphan: a program that was started while another tree's processes were listed was taken for an orphan
// of that tree, and killed with it.
func TestWhatJustStartedIsNoOrphan(t *testing.T) {
	t.Parallel()
	const mark = MarkKey + "=same"
	first := start(t, true, []string{mark}, "/bin/sh", "-c", "echo ready; read x")
	require.Equal(t, "ready", first.line(t))
	tree := NewTree(nil)
	tree.Leader, tree.Mark = first.Pid, mark
	started, listed := make(chan struct{}), make(chan []int)
	go func() { // ends when all were started
		defer close(listed)
		for {
			select {
			case <-started:
				return
			default:
			}
			if pids := tree.Running(reaping); len(pids) > 1 {
				listed <- pids
				return
			}
		}
	}()
	for range 60 {
		start(t, true, []string{mark}, "/bin/sh", "-c", "read x")
	}
	close(started)
	require.Empty(t, <-listed, "only %d is of the tree", first.Pid)
}

func TestALateKillDoesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, true, nil, "/bin/sh", "-c", "echo ready; read x; exit 4")
	require.Equal(t, "ready", p.line(t))
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	tree := NewTree([]int{fd})
	tree.Leader, tree.Mark = p.Pid, MarkKey+"=late"
	require.True(t, tree.Grouped())
	tree.Close()
	tree.Kill(reaping, clock.Wall{})
	require.Nil(t, tree.Running(reaping))
	require.NoError(t, p.in.Close())
	p.wait(t)
	require.Equal(t, 4, p.Status.ExitStatus())
}

func TestWhereAProgramIsBorn(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fds    []int
		clone  bool
		join   []int
		cgroup int
		procs  int
	}{
		"no group":             {procs: -1},
		"no group to clone in": {clone: true, procs: -1},
		"groups to join":       {fds: []int{90, 91}, join: []int{90, 91}, procs: 90},
		"a folder":             {fds: []int{90, 91}, clone: true, cgroup: 90, procs: 91},
		"a folder alone":       {fds: []int{90}, clone: true, join: []int{90}, procs: 90},
	} {
		tree := NewTree(c.fds)
		var s spawn.Spec
		tree.Place(&s, c.clone)
		require.Equal(t, c.join, s.Join, what)
		require.Equal(t, c.cgroup, s.Cgroup, what)
		require.Equal(t, c.procs, tree.procs, what)
		require.Equal(t, len(c.fds) > 0, tree.Grouped(), what)
	}
}

// TestMembersByTheTable: descent, session and process group tell who belongs to a leader; other leaders' do not.
func TestMembersByTheTable(t *testing.T) {
	t.Parallel()
	self := os.Getpid()
	const high = 1 << 23 // no process has such a number
	line := func(pid, ppid, pgrp, sid int) proc {
		return proc{pid: high + pid, ppid: ppid, pgrp: high + pgrp, sid: high + sid, state: 'S', threads: 1}
	}
	table := map[int]proc{}
	for _, p := range []proc{
		line(1, self, 1, 1),       // the leader
		line(2, high+1, 1, 1),     // its child
		line(3, high+2, 3, 3),     // a grandchild in a session of its own
		line(4, self, 1, 1),       // an orphan of the session
		line(5, self, 5, 1),       // likewise in another group
		line(6, high+5, 6, 6),     // the child of that
		line(20, self, 20, 20),    // another leader
		line(21, high+20, 20, 20), // its child
		line(22, self, 20, 20),    // its orphan
		line(23, high+4, 20, 20),  // a child of ours that joined its session
	} {
		table[p.pid] = p
	}
	zombie := line(7, high+1, 1, 1)
	zombie.state = 'Z'
	table[zombie.pid] = zombie
	leaders := map[int]bool{high + 1: true, high + 20: true}
	tree := NewTree(nil)
	tree.Leader, tree.Mark = high+1, MarkKey+"=x"
	live, unsure := tree.scan(table, leaders)
	slices.Sort(live)
	require.False(t, unsure)
	for i := range live {
		live[i] -= high
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 23}, live)

	// The main task has the orphans that nobody marked.
	table[high+8] = line(8, self, 8, 8)
	tree.Mark = ""
	live, _ = tree.scan(table, leaders)
	require.Contains(t, live, high+8)
	delete(leaders, high+1) // it has ended
	live, _ = tree.scan(table, leaders)
	require.NotContains(t, live, high+21)
}

func TestDescendantsAreAllBelow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(rt, "n")
		table := map[int]proc{}
		below := map[int]bool{1: true}
		for pid := 2; pid < 2+n; pid++ {
			parent := rapid.IntRange(0, pid-1).Draw(rt, "parent")
			table[pid] = proc{pid: pid, ppid: parent}
			below[pid] = below[parent]
		}
		delete(below, 1)
		got := descendants(table, 1)
		require.Len(rt, slices.Compact(slices.Sorted(slices.Values(got))), len(got), "each once")
		for pid := 2; pid < 2+n; pid++ {
			require.Equal(rt, below[pid], slices.Contains(got, pid), "%d of %v", pid, table)
		}
	})
}

// TestTheProcessTableIsReadWhateverNamesAre: a name may hold blanks and brackets.
func TestTheProcessTableIsReadWhateverNamesAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := dir + "/a) Z 1 (b"
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho ready\nread x\n"), 0o700))
	p := start(t, true, nil, script)
	require.Equal(t, "ready", p.line(t))
	got, ok := readProc(p.Pid)
	require.True(t, ok)
	require.True(t, got.alive())
	require.Equal(t, []int{p.Pid, os.Getpid(), p.Pid, p.Pid}, []int{got.pid, got.ppid, got.pgrp, got.sid})
	require.Equal(t, 1, got.threads)
	all := processes()
	require.Equal(t, os.Getpid(), all[p.Pid].ppid)
	pids, known := directChildren()
	if known {
		require.Contains(t, pids, p.Pid)
	}
	require.NoError(t, p.in.Close())
	p.wait(t)
	_, ok = readProc(p.Pid)
	require.False(t, ok)
}

func TestWhoIsAlive(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		p    proc
		want bool
	}{
		"sleeping":                     {proc{state: 'S', threads: 1}, true},
		"a zombie":                     {proc{state: 'Z', threads: 1}, false},
		"dead":                         {proc{state: 'X', threads: 1}, false},
		"whose first thread has ended": {proc{state: 'Z', threads: 3}, true},
	} {
		require.Equal(t, c.want, c.p.alive(), what)
	}
	require.Empty(t, alive([]int{os.Getpid(), 1 << 23}), "neither this process nor one that is not there")
}

func TestPidsInFiles(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/procs")
	require.NoError(t, err)
	defer f.Close()
	want := make([]int, 3000) // more than one read
	var text strings.Builder
	for i := range want {
		want[i] = 100_000 + i
		text.WriteString(strconv.Itoa(want[i]) + "\n")
	}
	_, err = f.WriteString(text.String())
	require.NoError(t, err)
	require.Equal(t, want, readPids(int(f.Fd())))
	require.Empty(t, readPids(-1))
	require.Equal(t, []int{1, 2}, parsePids([]byte(" 1 x\n2 -")))
}

func TestWhatAProcessUses(t *testing.T) {
	t.Parallel()
	own, ok := PrivateBytes(os.Getpid())
	require.True(t, ok)
	require.Greater(t, own, int64(1<<20))
	_, ok = PrivateBytes(1 << 23)
	require.False(t, ok)
	p := sh(t, "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo burnt; read x")
	require.Equal(t, "burnt", p.line(t))
	spent, ok := CPUTime(p.Pid)
	require.True(t, ok)
	require.Positive(t, spent)
	require.Less(t, spent, time.Minute)
	_, ok = CPUTime(1 << 23)
	require.False(t, ok)
}

func TestDescriptorsOfNobodyAreClosed(t *testing.T) {
	t.Parallel()
	var fds [2]int
	require.NoError(t, syscall.Pipe2(fds[:], syscall.O_CLOEXEC))
	CloseAll(fds[1:])
	n, err := syscall.Read(fds[0], make([]byte, 1))
	require.NoError(t, err)
	require.Zero(t, n, "the other end is closed")
	require.NoError(t, syscall.Close(fds[0]))
	CloseAll(nil)
}
