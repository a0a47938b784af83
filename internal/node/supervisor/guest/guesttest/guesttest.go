package guesttest

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/sharetest"
)

// Patience is how long a test waits for what others do.
const Patience = 30 * time.Second

// reaper has the children of this process.
var reaper = sync.OnceValue(func() *process.Reaper { // of the process
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() { // ends with the process
		for range ended {
			_, _ = w.Write([]byte{1})
		}
	}()
	all := process.NewReaper()
	go all.Run(r) // ends with the process
	return all
})

// Launcher starts programs in a guest with that configuration, which is this machine.
func Launcher(t testing.TB, boot wire.Boot) *program.Launcher {
	t.Helper()
	sharetest.Take(t)
	l := &program.Launcher{Clock: clock.Wall{}, Reaper: reaper(), Accounts: account.Open("/etc/passwd", "/etc/group")}
	l.Configure(boot)
	return l
}

// Frame is one that the guest sent.
type Frame struct {
	wire.Header
	Payload []byte
}

// Agent is the agent's end of channels.
type Agent struct {
	frames chan Frame

	mu      sync.Mutex
	removed []uint32 // guarded by mu
	err     error    // of further writes; guarded by mu
}

// NewAgent returns an agent that has seen nothing. It keeps up to 100,000 frames.
func NewAgent() *Agent { return &Agent{frames: make(chan Frame, 100_000)} }

// Write takes a frame of the guest's.
func (a *Agent) Write(frame []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	h, err := wire.ParseHeader(frame)
	if err == nil {
		a.frames <- Frame{h, slices.Clone(frame[wire.HeaderSize:])}
	}
	return err
}

// Break makes all further writes fail.
func (a *Agent) Break(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Remove notes that the guest forgot a channel.
func (a *Agent) Remove(channel uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removed = append(a.removed, channel)
}

// Removed lists the channels that the guest forgot.
func (a *Agent) Removed() []uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.removed)
}

// Next waits for the next frame.
func (a *Agent) Next(t testing.TB) Frame {
	t.Helper()
	select {
	case f := <-a.frames:
		return f
	case <-time.After(Patience):
		require.FailNow(t, "the guest sends nothing")
		return Frame{}
	}
}

// Of waits for the next frame of a kind, and drops those before.
func (a *Agent) Of(t testing.TB, kind wire.Kind) Frame {
	t.Helper()
	for {
		if f := a.Next(t); f.Kind == kind {
			return f
		}
	}
}

// Quiet reports whether no frame waits to be read.
func (a *Agent) Quiet() bool { return len(a.frames) == 0 }
