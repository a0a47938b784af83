package server

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// tree is everything that a leader started: known exactly by its control group where it has one; else by descent,
// session, process group, and a mark in the environment.
type tree struct {
	leader int
	procs  int    // an open cgroup.procs, -1 = none
	mark   string // "KEY=value" in the environment; "" = all orphans that are nobody's (the main task)
	fds    []int  // the files of its control group

	mu     sync.RWMutex // held for reading while numbers of processes and files are used
	closed bool         // the numbers may be somebody else's by now; guarded by mu
}

// close ends the tree: a late kill does nothing. It waits for kills under way.
func (t *tree) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	closeAll(t.fds)
	t.fds = nil
}

// running lists the tree's processes.
func (t *tree) running(r *reaper) []int {
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

// kill kills the tree and returns when nothing of it runs any more, or when it gave up.
func (t *tree) kill(r *reaper, c clock.Clock) {
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

func waitChange(c clock.Clock, changed <-chan struct{}, d time.Duration) {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C():
	}
}

// members lists the running processes of the tree. unsure: others may be of it, which the next look tells. Caller holds mu.
func (t *tree) members(r *reaper) (live []int, unsure bool) {
	if childless() {
		return nil, false
	}
	if t.procs >= 0 {
		return alive(readPids(t.procs)), false
	}
	leaders := r.leaders()
	if !leaders[t.leader] && !hasOrphans(leaders) {
		return nil, false // the leader is gone and left nothing behind: the common case, and a cheap one
	}
	return t.scan(processes(), leaders)
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

func (t *tree) scan(table map[int]proc, leaders map[int]bool) (live []int, unsure bool) {
	self := os.Getpid()
	children := map[int][]int{}
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p.pid)
	}
	seen := map[int]bool{}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] || pid == self || pid != t.leader && leaders[pid] {
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
	if _, ok := table[t.leader]; ok && leaders[t.leader] {
		add(t.leader)
	}
	for _, p := range table {
		mine, known := p.sid == t.leader || p.pgrp == t.leader, true
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
func (t *tree) owns(p proc, leaders map[int]bool) (mine, known bool) {
	if leaders[p.sid] && p.sid != t.leader {
		return false, true // it is still in the session of another one
	}
	env, known := environ(p)
	if t.mark == "" {
		return known && !hasAnyMark(env), known
	}
	return hasMark(env, t.mark), known
}

func alive(pids []int) (live []int) {
	self := os.Getpid()
	for _, pid := range pids {
		if p, ok := readProc(pid); ok && p.alive() && pid != self {
			live = append(live, pid)
		}
	}
	return live
}

// killAll kills every process that descends from us, until none is left.
func killAll(r *reaper, c clock.Clock) bool {
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
