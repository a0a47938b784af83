package server

import (
	"os"
	"sync"
	"syscall"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/guest/executions"
	"github.com/drover-project/drover/internal/node/supervisor/guest/files"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/guest/task"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Server is one supervisor.
type Server struct {
	// Constant.
	clock      clock.Clock
	launcher   *program.Launcher
	executions *executions.Table
	files      *files.Files
	ended      chan struct{}
	endOnce    sync.Once

	mu       sync.Mutex
	logDir   int            // -1: the main task's output is thrown away; guarded by mu
	task     *task.Task     // guarded by mu
	stopping bool           // guarded by mu
	trimmer  clock.Timer    // guarded by mu
	agents   map[*conn]bool // that are connected; guarded by mu
	idle     bool           // the task was let go, and the next has not come; guarded by mu
	lonely   clock.Timer    // guarded by mu
}

// New returns a server that has not started anything. logDir is an open directory; without a LogTask it is none.
func New(boot wire.Boot, c clock.Clock, logDir int) *Server {
	l := &program.Launcher{Clock: c, Reaper: process.NewReaper(), Accounts: account.Open("/etc/passwd", "/etc/group")}
	return newServer(l, boot, logDir)
}

// newServer is New for a launcher of the caller's; tests give it users and a clock of their own.
func newServer(l *program.Launcher, boot wire.Boot, logDir int) *Server {
	s := &Server{
		clock: l.Clock, launcher: l, files: files.New(l.Accounts, l.Boot), agents: map[*conn]bool{}, ended: make(chan struct{}),
	}
	s.executions = executions.NewTable(l, s.trimLater)
	s.configure(boot, logDir)
	return s
}

// configure takes a task's configuration. Caller holds mu, or is New.
func (s *Server) configure(boot wire.Boot, logDir int) {
	if boot.LogTask == "" {
		logDir = -1
	}
	s.logDir = logDir
	s.launcher.Configure(boot)
}

// Serve accepts agents on the listening descriptor until a shutdown was asked for and done. children tells of ended ones.
func (s *Server) Serve(listener int, children *os.File) error {
	go s.launcher.Reaper.Run(children) // ends with the process
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

// accept takes agents until the listener is closed. Several may be connected: after a restart the new one comes before the former is
// known to be gone.
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

// shutdown kills everything, lets the sessions hear of it, and makes Serve return.
func (s *Server) shutdown() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.executions.Stop()
	process.KillAll(s.launcher.Reaper, s.clock)
}

// end makes Serve return, however often it is called.
func (s *Server) end() { s.endOnce.Do(func() { close(s.ended) }) }
