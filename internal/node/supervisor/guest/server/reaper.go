package server

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// child is a process that we started.
type child struct {
	pid       int
	killGroup bool          // what is left of its process group is killed before the pid can be used again
	done      chan struct{} // closed when it was reaped; status and usage are set then
	status    syscall.WaitStatus
	usage     syscall.Rusage
	orphans   used // guarded by the reaper's mu
}

// used is what processes used together.
type used struct {
	user, system time.Duration
	peak         int64 // the largest one's memory, in bytes
}

func (u *used) add(ru syscall.Rusage) {
	u.user += time.Duration(ru.Utime.Nano())
	u.system += time.Duration(ru.Stime.Nano())
	u.peak = max(u.peak, ru.Maxrss<<10)
}

// reaper collects all children, ours and the orphans that the kernel hands to us.
type reaper struct {
	mu      sync.Mutex // also held over a start, so that no child is reaped before it is known
	known   map[int]*child
	owners  map[int]*child // by their sessions' ids, which are their pids: also while only orphans of theirs run
	kept    bool           // there may be orphans of a child that is no owner any more
	changed chan struct{}  // closed and replaced whenever something was reaped
}

func newReaper() *reaper {
	return &reaper{known: map[int]*child{}, owners: map[int]*child{}, changed: make(chan struct{})}
}

func (r *reaper) start(s spawn.Spec, killGroup bool) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := spawn.Start(s)
	if err != nil {
		return nil, err
	}
	c := &child{pid: pid, killGroup: killGroup, done: make(chan struct{})}
	r.known[pid], r.owners[pid] = c, c
	r.kept = r.kept || !killGroup
	return c, nil
}

// settle reaps what has ended, and returns what orphans of the child used: the kernel tells it nobody else. None is
// added from now on.
func (r *reaper) settle(c *child) used {
	for r.reapOne() {
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, c.pid)
	return c.orphans
}

// orphaned is what orphans of the child that have ended used up to now.
func (r *reaper) orphaned(c *child) used {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.orphans
}

// ownerLocked says whose orphan a zombie is: by its session; one that has left it is that of the only child there is.
func (r *reaper) ownerLocked(pid int) *child {
	if p, ok := readProc(pid); ok && r.owners[p.sid] != nil {
		return r.owners[p.sid]
	}
	if len(r.owners) == 1 && !r.kept {
		for _, c := range r.owners {
			return c
		}
	}
	return nil
}

// run reaps for ever, whenever the file says that a child has ended.
func (r *reaper) run(children *os.File) {
	event := make([]byte, 8)
	for {
		for r.reapOne() {
		}
		if _, err := children.Read(event); err != nil {
			return // never: nobody closes it
		}
	}
}

func (r *reaper) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := peekExited()
	if err != nil || pid == 0 {
		return false
	}
	c := r.known[pid]
	var owner *child
	switch {
	case c == nil:
		owner = r.ownerLocked(pid)
	case c.killGroup:
		_ = syscall.Kill(-pid, syscall.SIGKILL) // the zombie still holds the number
	}
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	if _, err := syscall.Wait4(pid, &ws, 0, &ru); err != nil {
		return true // a failed start collected it
	}
	switch {
	case c != nil:
		delete(r.known, pid)
		c.status, c.usage = ws, ru
		close(c.done)
	case owner != nil:
		owner.orphans.add(ru)
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return true
}

// next is closed when something is reaped after the call.
func (r *reaper) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// leaders returns the pids of running children that we started.
func (r *reaper) leaders() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[int]bool, len(r.known))
	for pid := range r.known {
		m[pid] = true
	}
	return m
}

// signal signals a child's process group, if the child is not reaped yet.
func (r *reaper) signal(c *child, sig syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[c.pid] != c {
		return false
	}
	return syscall.Kill(-c.pid, sig) == nil
}

const (
	pAll      = 0
	wExited   = 4
	wNoHang   = 1
	wNoWait   = 0x01000000
	siPidAt   = 16
	siginfoSz = 128
)

// childless reports whether we have no children at all.
func childless() bool {
	_, err := peekExited()
	return errors.Is(err, syscall.ECHILD)
}

// peekExited returns the pid of a zombie child without reaping it; 0 if there is none. Errors: ECHILD.
func peekExited() (int, error) {
	var info [siginfoSz]byte
	for {
		_, _, e := syscall.RawSyscall6(syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&info[0])), wExited|wNoWait|wNoHang, 0, 0)
		switch e {
		case 0:
			return int(*(*int32)(unsafe.Pointer(&info[siPidAt]))), nil
		case syscall.EINTR:
		default:
			return 0, e
		}
	}
}
