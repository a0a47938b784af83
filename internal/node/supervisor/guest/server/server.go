package server

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Server is one supervisor.
type Server struct {
	// Constant.
	clock      clock.Clock
	reaper     *reaper
	keepGroups bool // setgroups is not allowed in this user namespace
	ended      chan struct{}
	endOnce    sync.Once
	passwd     guestFile
	group      guestFile

	config atomic.Pointer[wire.Boot] // of the task that is served now

	mu       sync.Mutex
	logDir   int                 // -1: the main task's output is thrown away; guarded by mu
	execs    map[string]*command // guarded by mu
	finished []string            // ids in execs, the oldest first; guarded by mu
	task     *task               // guarded by mu
	stopping bool                // guarded by mu
	trimmer  clock.Timer         // guarded by mu
	agents   map[*conn]bool      // that are connected; guarded by mu
	idle     bool                // the task was let go, and the next has not come; guarded by mu
	lonely   clock.Timer         // guarded by mu
}

const (
	defaultGrace = 30 * time.Second
	keepFinished = 10 * time.Minute // how long an exit waits for a lost agent
	maxFinished  = 64
	listenBuffer = 16
)

// New returns a server that has not started anything. logDir is an open directory; without a LogTask it is none.
func New(boot wire.Boot, c clock.Clock, logDir int) *Server {
	deny, _ := os.ReadFile("/proc/self/setgroups")
	s := &Server{
		clock: c, reaper: newReaper(), execs: map[string]*command{}, agents: map[*conn]bool{},
		keepGroups: strings.HasPrefix(string(deny), "deny"), ended: make(chan struct{}),
		passwd: guestFile{path: "/etc/passwd"}, group: guestFile{path: "/etc/group"},
	}
	s.configure(boot, logDir)
	return s
}

// boot is what the agent said of the task; it is not changed.
func (s *Server) boot() *wire.Boot { return s.config.Load() }

// configure takes a task's configuration. Caller holds mu, or is New.
func (s *Server) configure(boot wire.Boot, logDir int) {
	if boot.Grace <= 0 {
		boot.Grace = defaultGrace
	}
	if boot.LogTask == "" {
		logDir = -1
	}
	s.logDir = logDir
	s.config.Store(&boot)
}

// Serve accepts agents on the listening descriptor until a shutdown was asked for and done. children tells of ended ones.
func (s *Server) Serve(listener int, children *os.File) error {
	go s.reaper.run(children) // ends with the process
	s.mu.Lock()
	s.watchSocket() // the agent may have been killed right after it started us
	s.mu.Unlock()
	if err := syscall.SetNonblock(listener, true); err != nil {
		return err
	}
	l := os.NewFile(uintptr(listener), "listener") // not blocking, so that the poller takes it
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(l) }() // ends when l is closed
	s.trimLater()                           // what starting up needed; a short task never comes to it
	select {
	case <-s.ended:
		return nil
	case err := <-accepted:
		return err
	}
}

func (s *Server) accept(l *os.File) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var fd int
		var aerr error
		err := raw.Read(func(lfd uintptr) bool {
			fd, _, aerr = syscall.Accept4(int(lfd), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
			return aerr != syscall.EAGAIN
		})
		if err != nil {
			return err
		}
		if aerr != nil {
			continue // the peer was gone already, or we are out of descriptors for a moment
		}
		c := newConn(s, fd)
		go c.run() // ends when the agent is gone
	}
}

// find returns an execution. Errors: NotFound.
func (s *Server) find(id string) (*command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.execs[id]; x != nil {
		return x, nil
	}
	return nil, drover.Errorf(drover.NotFound, "no execution %q", id)
}

// noteFinished bounds how many ended executions are kept for agents that may come back.
func (s *Server) noteFinished(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = append(s.finished, id)
	if len(s.finished) > maxFinished {
		delete(s.execs, s.finished[0])
		s.finished = s.finished[1:]
	}
}

func (s *Server) forget(x *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.execs[x.spec.ID] != x {
		return
	}
	delete(s.execs, x.spec.ID)
	for i, id := range s.finished {
		if id == x.spec.ID {
			s.finished = append(s.finished[:i], s.finished[i+1:]...)
			break
		}
	}
}

// shutdown kills everything, lets the sessions hear of it, and makes Serve return.
func (s *Server) shutdown() {
	s.mu.Lock()
	s.stopping = true
	var list []*command
	for _, x := range s.execs {
		list = append(list, x)
	}
	s.mu.Unlock()
	for _, x := range list {
		x.markKilled(execution.CauseRunnerGone)
	}
	killAll(s.reaper, s.clock)
}

func (s *Server) end() { s.endOnce.Do(func() { close(s.ended) }) }
