package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/wake"
)

// Child is a process that we started.
type Child struct {
	Pid    int
	Done   chan struct{} // closed when it was reaped; Status and Usage are set then
	Status syscall.WaitStatus
	Usage  syscall.Rusage

	killGroup bool // what is left of its process group is killed before the pid can be used again
	orphans   Used // guarded by the reaper's mu
}

// Unstarted returns a child that has not been started, and so does not end.
func Unstarted() *Child { return &Child{Done: make(chan struct{})} }

// Used is what processes used together.
type Used struct {
	User, System time.Duration
	Peak         int64 // the largest one's memory, in bytes
}

// Add adds what one more process used.
func (u *Used) Add(ru syscall.Rusage) {
	u.User += time.Duration(ru.Utime.Nano())
	u.System += time.Duration(ru.Stime.Nano())
	u.Peak = max(u.Peak, ru.Maxrss<<10)
}

// Reaper collects all children, ours and the orphans that the kernel hands to us.
type Reaper struct {
	mu      sync.Mutex // also held over a start, so that no child is reaped before it is known
	known   map[int]*Child
	owners  map[int]*Child // by their sessions' ids, which are their pids: also while only orphans of theirs run
	kept    bool           // there may be orphans of a child that is no owner any more
	changed wake.Broadcast // something was reaped
}

// NewReaper returns a reaper that knows no child yet.
func NewReaper() *Reaper {
	return &Reaper{known: map[int]*Child{}, owners: map[int]*Child{}}
}

// Start starts a program as our child. killGroup: what is left of its process group is killed with it. Errors:
// *spawn.Error.
func (r *Reaper) Start(s spawn.Spec, killGroup bool) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := spawn.Start(s)
	if err != nil {
		return nil, err
	}
	c := &Child{Pid: pid, killGroup: killGroup, Done: make(chan struct{})}
	r.known[pid], r.owners[pid] = c, c
	r.kept = r.kept || !killGroup
	return c, nil
}

// Settle reaps what has ended, and returns what orphans of the child used: the kernel tells it nobody else. None is
// added from now on.
func (r *Reaper) Settle(c *Child) Used {
	for r.reapOne() {
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, c.Pid)
	return c.orphans
}

// Orphaned is what orphans of the child that have ended used up to now.
func (r *Reaper) Orphaned(c *Child) Used {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.orphans
}

// ownerLocked says whose orphan a zombie is: by its session; one that has left it is that of the only child there is.
func (r *Reaper) ownerLocked(pid int) *Child {
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

// Run reaps for ever, whenever the file says that a child has ended.
func (r *Reaper) Run(children *os.File) {
	event := make([]byte, 8)
	for {
		for r.reapOne() {
		}
		if _, err := children.Read(event); err != nil {
			return // never: nobody closes it
		}
	}
}

// reapOne collects one ended child and reports whether there was one. The zombie is looked at first, as its number and session are lost
// with it.
func (r *Reaper) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := peekExited()
	if err != nil || pid == 0 {
		return false
	}
	c := r.known[pid]
	var owner *Child
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
		c.Status, c.Usage = ws, ru
		close(c.Done)
	case owner != nil:
		owner.orphans.Add(ru)
	}
	r.changed.Send()
	return true
}

// next is closed when something is reaped after the call.
func (r *Reaper) next() <-chan struct{} { return r.changed.C() }

// leaders returns the pids of running children that we started.
func (r *Reaper) leaders() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[int]bool, len(r.known))
	for pid := range r.known {
		m[pid] = true
	}
	return m
}

// Signal signals a child's process group; false if the child is reaped already.
func (r *Reaper) Signal(c *Child, sig syscall.Signal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[c.Pid] != c {
		return false
	}
	return syscall.Kill(-c.Pid, sig) == nil
}

// Numbers of waitid(2) and the place of si_pid in its siginfo_t, which package syscall does not have.
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
