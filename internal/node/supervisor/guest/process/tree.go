package process

import (
	"maps"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// Tree is everything that a leader started: known exactly by its control group where it has one; else by descent,
// session, process group, and a mark in the environment.
type Tree struct {
	Leader int    // the pid of the program that was started; set before anything is killed
	Mark   string // "KEY=value" in the environment; "" = all orphans that are nobody's (the main task)

	grouped bool
	procs   int   // an open cgroup.procs, -1 = none
	fds     []int // the files of its control group

	mu     sync.RWMutex // held for reading while the numbers of processes and files are used
	closed bool         // the numbers may be somebody else's by now; guarded by mu
}

// NewTree returns the tree of a program that is not started yet. fds are the open files of its control group, if it has
// one; the tree closes them.
func NewTree(fds []int) *Tree { return &Tree{grouped: len(fds) > 0, procs: -1, fds: fds} }

// Grouped reports whether a control group knows the members of the tree.
func (t *Tree) Grouped() bool { return t.grouped }

// Place makes the program start inside the tree's control group. With clone it is born there: the first file is then the group's folder,
// the second its cgroup.procs. Otherwise it joins through the files before it is executed.
func (t *Tree) Place(s *spawn.Spec, clone bool) {
	switch {
	case len(t.fds) == 0:
	case clone && len(t.fds) > 1:
		s.Cgroup, t.procs = t.fds[0], t.fds[1]
	default:
		s.Join, t.procs = t.fds, t.fds[0]
	}
}

// Close ends the tree: a late kill does nothing. It waits for kills under way.
func (t *Tree) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	CloseAll(t.fds)
	t.fds = nil
}

// Running lists the tree's processes; none after Close.
func (t *Tree) Running(r *Reaper) []int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return nil
	}
	live, _ := t.members(r)
	return live
}

// The bounds of a kill: a process in uninterruptible sleep may never end. Whose one is that is starting a program is known
// within milliseconds, if ever.
const (
	killPatience = 5 * time.Second
	killRescan   = 5 * time.Millisecond
	startTakes   = 200 * time.Millisecond
)

// Kill kills the tree and returns when nothing of it runs any more, or when it gave up.
func (t *Tree) Kill(r *Reaper, c clock.Clock) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return
	}
	begun := c.Now()
	for {
		changed := r.next()
		live, unsure := t.members(r)
		if len(live) == 0 && (!unsure || c.Now().Sub(begun) > startTakes) {
			return
		}
		for _, pid := range live {
			_ = syscall.Kill(pid, syscall.SIGSTOP) // so that none of them forks away between being listed and killed
		}
		for _, pid := range live {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if c.Now().Sub(begun) > killPatience {
			return
		}
		waitChange(c, changed, killRescan)
	}
}

// waitChange returns when a child was reaped, or after d.
func waitChange(c clock.Clock, changed <-chan struct{}, d time.Duration) {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C():
	}
}

// members lists the running processes of the tree. unsure: others may be of it, which the next look tells. Caller holds mu.
func (t *Tree) members(r *Reaper) (live []int, unsure bool) {
	if childless() {
		return nil, false
	}
	if t.procs >= 0 {
		return alive(readPids(t.procs)), false
	}
	leaders := r.leaders()
	if !leaders[t.Leader] && !hasOrphans(leaders) {
		return nil, false // the leader is gone and left nothing behind: the common case, and a cheap one
	}
	// What starts while the table is read stands in it, and is a leader only afterwards.
	table := processes()
	maps.Copy(leaders, r.leaders())
	return t.scan(table, leaders)
}

// hasOrphans reports whether we have children that we did not start. What a dead leader left behind descends from one.
func hasOrphans(leaders map[int]bool) bool {
	pids, ok := directChildren()
	if !ok {
		return true
	}
	for _, pid := range pids {
		if !leaders[pid] {
			return true
		}
	}
	return false
}

// scan finds the tree in a process table: the leader, its session, its process group, orphans with its mark, and all that descends from
// them. Other leaders are left out.
func (t *Tree) scan(table map[int]proc, leaders map[int]bool) (live []int, unsure bool) {
	self := os.Getpid()
	children := map[int][]int{}
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p.pid)
	}
	seen := map[int]bool{}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] || pid == self || pid != t.Leader && leaders[pid] {
			return
		}
		seen[pid] = true
		if table[pid].alive() {
			live = append(live, pid)
		}
		for _, c := range children[pid] {
			add(c)
		}
	}
	if _, ok := table[t.Leader]; ok && leaders[t.Leader] {
		add(t.Leader)
	}
	for _, p := range table {
		mine, known := p.sid == t.Leader || p.pgrp == t.Leader, true
		if !mine && p.ppid == self && !leaders[p.pid] {
			mine, known = t.owns(p, leaders)
		}
		if mine {
			add(p.pid)
		}
		unsure = unsure || !known && p.alive()
	}
	return live, unsure
}

// owns decides whose an orphan is, if that is known yet.
func (t *Tree) owns(p proc, leaders map[int]bool) (mine, known bool) {
	if leaders[p.sid] && p.sid != t.Leader {
		return false, true // it is still in the session of another one
	}
	env, known := environ(p)
	if t.Mark == "" {
		return known && !hasAnyMark(env), known
	}
	return hasMark(env, t.Mark), known
}

// alive leaves out those that have ended, and ourselves: on v1 we may be in the group.
func alive(pids []int) (live []int) {
	self := os.Getpid()
	for _, pid := range pids {
		if p, ok := readProc(pid); ok && p.alive() && pid != self {
			live = append(live, pid)
		}
	}
	return live
}

// KillAll kills every process that descends from us, until none is left. It reports false when some did not end within
// five seconds.
func KillAll(r *Reaper, c clock.Clock) bool {
	deadline := c.Now().Add(killPatience)
	self := os.Getpid()
	for {
		changed := r.next()
		if childless() {
			return true
		}
		for _, pid := range descendants(processes(), self) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if c.Now().After(deadline) {
			return false
		}
		waitChange(c, changed, killRescan)
	}
}

// descendants lists all processes below root, each parent before its children.
func descendants(table map[int]proc, root int) (pids []int) {
	children := map[int][]int{}
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p.pid)
	}
	queue := children[root]
	for len(queue) > 0 {
		pid := queue[0]
		queue = append(queue[1:], children[pid]...)
		pids = append(pids, pid)
	}
	return pids
}
