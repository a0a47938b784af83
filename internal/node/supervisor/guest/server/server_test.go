package server

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/guesttest"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// agent is a connection to a server, spoken by hand.
type agent struct {
	s    *Server
	f    *os.File
	done chan struct{} // closed when the server let it go
}

func newGuest(t testing.TB, boot wire.Boot) *Server {
	t.Helper()
	return newServer(guesttest.Launcher(t, boot), boot, -1)
}

// dial connects without a word.
func dial(t testing.TB, s *Server) *agent {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	a := &agent{s: s, f: os.NewFile(uintptr(fds[0]), "agent"), done: make(chan struct{})}
	go func() { // ends when either end is closed
		newConn(s, fds[1]).run()
		close(a.done)
	}()
	t.Cleanup(func() {
		_ = a.f.Close() // it may be closed
		<-a.done
	})
	require.NoError(t, a.f.SetDeadline(time.Now().Add(guesttest.Patience)))
	return a
}

// greeted is dial with the hellos exchanged.
func greeted(t testing.TB, s *Server) *agent {
	t.Helper()
	a := dial(t, s)
	a.send(t, wire.KindHello, 0, wire.Hello{Min: 1, Max: 99}.Encode())
	f := a.next(t)
	require.Equal(t, wire.KindHello, f.Kind)
	h, err := wire.DecodeHello(f.Payload)
	require.NoError(t, err)
	require.Equal(t, wire.Hello{Min: wire.Version, Max: wire.Version, Pid: os.Getpid(), ID: s.launcher.Boot().ID}, h)
	return a
}

func (a *agent) send(t testing.TB, kind wire.Kind, channel uint32, payload []byte) {
	t.Helper()
	_, err := a.f.Write(wire.Frame(kind, 0, channel, payload))
	require.NoError(t, err)
}

func (a *agent) open(t testing.TB, channel uint32, op wire.Op, request []byte) {
	t.Helper()
	a.send(t, wire.KindOpen, channel, append([]byte{byte(op)}, request...))
}

func (a *agent) next(t testing.TB) guesttest.Frame {
	t.Helper()
	f, err := a.read()
	require.NoError(t, err)
	return f
}

func (a *agent) read() (f guesttest.Frame, err error) {
	head := make([]byte, wire.HeaderSize)
	if _, err = io.ReadFull(a.f, head); err != nil {
		return f, err
	}
	if f.Header, err = wire.ParseHeader(head); err != nil {
		return f, err
	}
	f.Payload = make([]byte, f.Length)
	_, err = io.ReadFull(a.f, f.Payload)
	return f, err
}

// ask opens a channel and returns its answer or its error.
func (a *agent) ask(t testing.TB, op wire.Op, request []byte) ([]byte, error) {
	t.Helper()
	const channel = 77
	a.open(t, channel, op, request)
	for {
		f := a.next(t)
		if f.Channel != channel {
			continue
		}
		if f.Kind == wire.KindError {
			return nil, wire.DecodeError(f.Payload)
		}
		require.Contains(t, []wire.Kind{wire.KindReply, wire.KindEnd}, f.Kind)
		return f.Payload, nil
	}
}

// closed waits until the server has let the agent go.
func (a *agent) closed(t testing.TB) {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(guesttest.Patience):
		require.FailNow(t, "the server keeps the connection")
	}
}

func str(s ...string) []byte {
	var e wire.Encoder
	for _, v := range s {
		e.Str(v)
	}
	return e.B
}

func TestVersionsAreAgreedOn(t *testing.T) {
	t.Parallel()
	s := newGuest(t, wire.Boot{ID: "i"})
	greeted(t, s)
	newer := dial(t, s)
	newer.send(t, wire.KindHello, 0, wire.Hello{Min: wire.Version + 1, Max: wire.Version + 5}.Encode())
	h, err := wire.DecodeHello(newer.next(t).Payload)
	require.NoError(t, err)
	require.Equal(t, "no common protocol version", h.Failure)
	newer.closed(t)
	for what, frame := range map[string][]byte{
		"no hello":          wire.Frame(wire.KindOpen, 0, 1, []byte{byte(wire.OpList)}),
		"half a hello":      wire.Frame(wire.KindHello, 0, 0, []byte{0x80}),
		"a giant":           {0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0},
		"a line of a shell": []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		a := dial(t, s)
		_, err := a.f.Write(frame)
		require.NoError(t, err, what)
		a.closed(t)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	a := greeted(t, newGuest(t, wire.Boot{}))
	for what, c := range map[string]struct {
		op      wire.Op
		request []byte
		code    drover.Code
	}{
		"an unknown operation": {200, nil, drover.NotImplemented},
		"a task's signal":      {wire.OpTaskSignal, str("TERM"), drover.Conflict},
		"a task's stop":        {wire.OpTaskStop, append(str("TERM"), 0), drover.Conflict},
		"a task's end":         {wire.OpTaskWait, nil, drover.Conflict},
		"a retirement":         {wire.OpRetire, nil, drover.Conflict},
		"another task":         {wire.OpReuse, wire.Boot{}.Encode(), drover.Conflict},
		"none there":           {wire.OpAttach, append(str("none"), 0, 0), drover.NotFound},
		"no task":              {wire.OpTaskStart, wire.Task{}.Encode(), drover.Invalid},
	} {
		_, err := a.ask(t, c.op, c.request)
		require.Equal(t, c.code, drover.CodeOf(err), "%s: %v", what, err)
	}
	for _, op := range []wire.Op{
		wire.OpExec, wire.OpTaskStart, wire.OpFileList, wire.OpFileApply, wire.OpExtract, wire.OpTaskStop, wire.OpReuse,
	} {
		_, err := a.ask(t, op, []byte{0x80, 0x80, 0x80})
		require.Error(t, err, "operation %d of a broken request", op)
	}
	state, err := a.ask(t, wire.OpTaskState, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{0}, state)
	a.send(t, wire.KindClose, 9999, nil) // nobody's channel
	a.send(t, wire.KindData, 9999, []byte("x"))
	_, err = a.ask(t, wire.OpList, nil)
	require.NoError(t, err, "the connection is whole")
	a.send(t, wire.KindOpen, 1, nil)
	a.closed(t) // what has no operation is no open
}

func TestAnExecutionOverTheWire(t *testing.T) {
	t.Parallel()
	a := greeted(t, newGuest(t, wire.Boot{WorkDir: "/"}))
	x := wire.Exec{Spec: execution.Spec{ID: "e", Argv: []string{"/bin/sh", "-c", "read x; echo got $x; exit 3"}, Stdin: true}}
	a.open(t, 1, wire.OpExec, x.Encode())
	require.Equal(t, wire.KindStarted, a.next(t).Kind)
	list, err := a.ask(t, wire.OpList, nil)
	require.NoError(t, err)
	d := wire.Decoder{B: list}
	require.Equal(t, 1, d.Len())
	require.Equal(t, "e", d.Execution().ID)
	head := wire.DataHead(0, 1, 0, 3)
	_, err = a.f.Write(append(head[:], "hi\n"...))
	require.NoError(t, err)
	var out string
	for {
		f := a.next(t)
		if f.Kind == wire.KindData {
			_, p, err := wire.ParseData(f.Payload)
			require.NoError(t, err)
			out += string(p)
		}
		if f.Kind == wire.KindExit {
			d := wire.Decoder{B: f.Payload}
			require.Equal(t, 3, d.Receipt().ExitCode)
			break
		}
	}
	require.Equal(t, "got hi\n", out)
	a.send(t, wire.KindClose, 1, nil)
}

func TestFilesOverTheWire(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := greeted(t, newGuest(t, wire.Boot{WorkDir: dir}))
	var apply wire.Encoder
	apply.Uint(2)
	apply.FileChange(execution.FileChange{Path: "d", Mkdir: true})
	apply.FileChange(execution.FileChange{Path: "d/f", Write: true, Data: []byte("text")})
	_, err := a.ask(t, wire.OpFileApply, apply.B)
	require.NoError(t, err)

	var write wire.Encoder
	write.FileChange(execution.FileChange{Path: "d/g"})
	a.open(t, 2, wire.OpFileWrite, write.B)
	head := wire.DataHead(0, 2, 0, 5)
	_, err = a.f.Write(append(head[:], "other"...))
	require.NoError(t, err)
	a.send(t, wire.KindEnd, 2, nil)
	for a.next(t).Kind != wire.KindEnd {
	}
	b, err := os.ReadFile(filepath.Join(dir, "d/g"))
	require.NoError(t, err)
	require.Equal(t, "other", string(b))

	var read wire.Encoder
	read.FileRequest(execution.FileRequest{Path: "d/f"})
	a.open(t, 3, wire.OpFileRead, read.B)
	d := wire.Decoder{B: a.next(t).Payload}
	require.Equal(t, "f", d.FileInfo().Path)
	_, p, err := wire.ParseData(a.next(t).Payload)
	require.NoError(t, err)
	require.Equal(t, "text", string(p))
	require.Equal(t, wire.KindEnd, a.next(t).Kind)

	// An agent that goes in the middle of a write leaves nothing of it.
	a.open(t, 4, wire.OpFileWrite, write.B)
	head = wire.DataHead(0, 4, 0, 4)
	_, err = a.f.Write(append(head[:], "half"...))
	require.NoError(t, err)
	a.send(t, wire.KindClose, 4, nil)
	for a.next(t).Kind != wire.KindError {
	}
	entries, err := os.ReadDir(filepath.Join(dir, "d"))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	b, err = os.ReadFile(filepath.Join(dir, "d/g"))
	require.NoError(t, err)
	require.Equal(t, "other", string(b))
}

// TestDescriptorsThatNobodyAskedForAreClosed.
func TestDescriptorsThatNobodyAskedForAreClosed(t *testing.T) {
	t.Parallel()
	a := greeted(t, newGuest(t, wire.Boot{}))
	var pipe [2]int
	require.NoError(t, syscall.Pipe2(pipe[:], syscall.O_CLOEXEC))
	frame := wire.Frame(wire.KindOpen, 0, 1, []byte{byte(wire.OpList)})
	frame[6] = 1 // descriptors
	raw, err := a.f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), frame, unix.UnixRights(pipe[1]), nil, 0)
		return true
	}))
	require.NoError(t, err)
	require.NoError(t, syscall.Close(pipe[1]))
	require.Equal(t, wire.KindReply, a.next(t).Kind)
	read := os.NewFile(uintptr(pipe[0]), "pipe")
	all, err := io.ReadAll(read) // ends, as nobody has the other end
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoError(t, read.Close())
}

// TestTheLifeOfASupervisor: a task, its end, the next task, and the end of all. It has the children of the whole process,
// so that no other test runs beside it.
func TestTheLifeOfASupervisor(t *testing.T) {
	s := newGuest(t, wire.Boot{ID: "first"})
	a, other := greeted(t, s), greeted(t, s)
	task := wire.Task{Argv: []string{"/bin/sh", "-c", "trap 'exit 6' TERM; kill -STOP $$; while :; do sleep 0.01; done"}}
	pid, err := a.ask(t, wire.OpTaskStart, task.Encode())
	require.NoError(t, err)
	d := wire.Decoder{B: pid}
	require.Positive(t, d.Int())
	_, err = a.ask(t, wire.OpTaskStart, task.Encode())
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "there is one")
	_, err = a.ask(t, wire.OpRetire, nil)
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "it runs")
	other.open(t, 1, wire.OpTaskWait, []byte{1})
	_, err = a.ask(t, wire.OpTaskSignal, str("CONT"))
	require.NoError(t, err)
	var stop wire.Encoder
	stop.Str("TERM")
	stop.Int(int64(time.Hour))
	a.open(t, 5, wire.OpTaskStop, stop.B)
	for range 1000 { // it may have stopped itself after the first
		_, err = a.ask(t, wire.OpTaskSignal, str("CONT"))
		if err != nil {
			break
		}
	}
	answer := other.next(t)
	require.Equal(t, wire.KindReply, answer.Kind)
	d = wire.Decoder{B: answer.Payload}
	require.NotZero(t, d.Receipt().ExitCode)

	require.Eventually(t, func() bool { _, err := a.ask(t, wire.OpRetire, nil); return err == nil }, guesttest.Patience, time.Millisecond)
	other.closed(t) // every agent but the one that asked
	_, err = a.ask(t, wire.OpTaskStart, task.Encode())
	require.Equal(t, drover.Gone, drover.CodeOf(err), "between two tasks nothing starts")
	_, err = a.ask(t, wire.OpReuse, wire.Boot{ID: "second"}.Encode())
	require.NoError(t, err)
	b := greeted(t, s)
	pid, err = b.ask(t, wire.OpTaskStart, wire.Task{Argv: []string{"/bin/sleep", "1000"}}.Encode())
	require.NoError(t, err)
	require.NotEmpty(t, pid)
	_, err = b.ask(t, wire.OpShutdown, nil)
	require.NoError(t, err)
	<-s.ended
	require.Error(t, func() error { _, err := b.ask(t, wire.OpTaskStart, task.Encode()); return err }())
}

// TestASupervisorThatWaitsEndsWithItsAgent.
func TestASupervisorThatWaitsEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	s := newGuest(t, wire.Boot{})
	a := greeted(t, s)
	s.mu.Lock()
	s.idle = true
	s.mu.Unlock()
	require.NoError(t, a.f.Close())
	<-s.ended
}

// FuzzFrames: whatever an agent sends, the server answers or lets it go, and does not panic.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(wire.Frame(wire.KindOpen, 0, 1, []byte{byte(wire.OpList)}))
	f.Add(wire.Frame(wire.KindOpen, 0, 1, append([]byte{byte(wire.OpAttach)}, str("x")...)))
	f.Add(append(wire.Frame(wire.KindOpen, 0, 1, []byte{byte(wire.OpTaskWait), 1}), wire.Frame(wire.KindClose, 1, 1, nil)...))
	f.Add([]byte(strings.Repeat("\x00\x01\x02", 100)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if harmful(b) {
			t.Skip("it would start, stop or write something")
		}
		a := greeted(t, newGuest(t, wire.Boot{}))
		_, err := a.f.Write(b)
		require.True(t, err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET), "%v", err)
		require.NoError(t, unix.Shutdown(int(a.f.Fd()), unix.SHUT_WR))
		a.closed(t)
	})
}

// harmful reports whether frames ask for more than to look.
func harmful(b []byte) bool {
	acts := []wire.Op{wire.OpExec, wire.OpTaskStart, wire.OpShutdown, wire.OpFileApply, wire.OpFileWrite, wire.OpExtract}
	for len(b) >= wire.HeaderSize {
		h, err := wire.ParseHeader(b)
		if err != nil || len(b) < wire.HeaderSize+int(h.Length) {
			return false
		}
		p := b[wire.HeaderSize : wire.HeaderSize+int(h.Length)]
		if h.Kind == wire.KindOpen && len(p) > 0 && slices.Contains(acts, wire.Op(p[0])) {
			return true
		}
		b = b[wire.HeaderSize+int(h.Length):]
	}
	return false
}
