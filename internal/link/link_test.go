package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is control and node in one test: it records what control hears and answers what a node would.
type world struct {
	registered *drover.Node
	pushed     []exchange.AllocUpdate
	left       chan string // how sessions were left, if somebody wants to know
	exchange.Workloads
}

func (w *world) Register(_ context.Context, n *drover.Node) (exchange.Registration, error) {
	w.registered = n
	return exchange.Registration{TTL: time.Second, Index: 7}, nil
}

func (w *world) Heartbeat(_ context.Context, id string) (exchange.Registration, error) {
	if id != "n1" {
		return exchange.Registration{}, drover.Errorf(drover.NotFound, "node not found")
	}
	return exchange.Registration{TTL: time.Second}, nil
}

func (w *world) Pull(ctx context.Context, _ string, seen exchange.Seen, _ time.Duration) (exchange.Assignment, error) {
	if seen.Index > 0 {
		<-ctx.Done()
		return exchange.Assignment{}, ctx.Err()
	}
	job := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{Tasks: []*drover.Task{{Config: map[string]any{"n": 3, "list": []any{"a"}}}}}}}
	return exchange.Assignment{Index: 9, Allocs: []*drover.Allocation{{ID: "a", Job: job}}}, nil
}

func (w *world) Push(_ context.Context, _ string, u []exchange.AllocUpdate) error {
	w.pushed = append(w.pushed, u...)
	return nil
}

func (w *world) Authenticate(_ context.Context, nodeID, secret string) error {
	if secret != "s-"+nodeID {
		return drover.Errorf(drover.Unauthorized, "wrong secret")
	}
	return nil
}

func (w *world) Admit(_ context.Context, tokens exchange.Tokens, _ *drover.Node) error {
	if tokens.Join != "join" && tokens.Introduction != "intro" {
		return drover.Errorf(drover.Unauthorized, "wrong join token")
	}
	return nil
}

func (w *world) StartExecution(_ context.Context, _, _ string, spec execution.Spec) (execution.Session, error) {
	if len(spec.Argv) == 0 {
		return nil, drover.Errorf(drover.Invalid, "argv: must be set")
	}
	return &echo{in: make(chan []byte), eof: make(chan struct{}), quit: make(chan string, 1), left: w.left}, nil
}

func (w *world) Files(string, string) execution.Files { return &memFiles{} }

func (w *world) ReadFolder(context.Context, string, string, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(strings.Repeat("x", 200_000))), nil
}

func (w *world) SnapshotFolder(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(strings.Repeat("y", 200_000))), nil
}

func (w *world) Logs(_ context.Context, r exchange.LogRequest) (exchange.LogReader, error) {
	if r.Task == "none" {
		return nil, drover.Errorf(drover.NotFound, "unknown task")
	}
	return &twoChunks{}, nil
}

type twoChunks struct{ n int64 }

func (l *twoChunks) Next(context.Context) (exchange.LogChunk, error) {
	if l.n++; l.n > 2 {
		return exchange.LogChunk{}, io.EOF
	}
	return exchange.LogChunk{File: "f", Offset: l.n, Data: []byte("line")}, nil
}
func (l *twoChunks) Close() error { return nil }

// echo sends stdin back and ends with a receipt at its end or with a signal.
type echo struct {
	in   chan []byte
	eof  chan struct{}
	quit chan string
	off  int64
	over bool
	left chan string
	once sync.Once
}

func (e *echo) Next(ctx context.Context) (execution.Frame, error) {
	if e.over {
		return execution.Frame{}, io.EOF
	}
	select {
	case p := <-e.in:
		f := execution.Frame{Stream: execution.Stdout, Offset: e.off, Data: p}
		e.off += int64(len(p))
		return f, nil
	case <-e.eof:
		e.over = true
		return execution.Frame{Receipt: &execution.Receipt{Cause: execution.CauseExited, StdoutBytes: e.off}}, nil
	case s := <-e.quit:
		e.over = true
		return execution.Frame{Receipt: &execution.Receipt{Cause: execution.CauseSignalled, ExitCode: 130, Error: s}}, nil
	case <-ctx.Done():
		return execution.Frame{}, ctx.Err()
	}
}

func (e *echo) Write(ctx context.Context, p []byte) error {
	if string(p) == "block" {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case e.in <- bytes.Clone(p):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (e *echo) CloseStdin(context.Context) error                   { close(e.eof); return nil }
func (e *echo) Resize(context.Context, execution.WindowSize) error { return nil }
func (e *echo) Signal(_ context.Context, s string) error           { e.quit <- s; return nil }
func (e *echo) Close() error                                       { e.leave("closed"); return nil }
func (e *echo) Lost()                                              { e.leave("lost") }
func (e *echo) Untaken()                                           { e.leave("untaken") }

func (e *echo) leave(how string) {
	if e.left != nil {
		e.once.Do(func() { e.left <- how })
	}
}

type memFiles struct{ execution.Files }

func (*memFiles) List(context.Context, execution.FileRequest) ([]execution.FileInfo, error) {
	return []execution.FileInfo{{Path: "a\nb\xff", Size: 3}}, nil
}

func (*memFiles) Read(_ context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	if r.Path == "missing" {
		return execution.FileInfo{}, nil, drover.Errorf(drover.NotFound, "no such file")
	}
	return execution.FileInfo{Size: 5}, io.NopCloser(strings.NewReader("hello")), nil
}

func (*memFiles) Write(_ context.Context, c execution.FileChange, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err == nil && len(data) != 150_000 {
		err = drover.Errorf(drover.Invalid, "%s: got %d bytes", c.Path, len(data))
	}
	return err
}

// serve starts control on loopback and returns a client for it and the tunnels' end.
func serve(t *testing.T, w *world) (*Control, *Nodes) {
	t.Helper()
	base, nodes := listen(t, w)
	hc := NewHTTPClient(nil)
	t.Cleanup(hc.CloseIdleConnections)
	return NewControl(hc, base, Identity{NodeID: "n1", Secret: "s-n1", JoinToken: "join"}), nodes
}

// listen serves the world, and returns where.
func listen(t *testing.T, w *world) (base string, nodes *Nodes) {
	t.Helper()
	nodes = NewNodes()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: Handler(w, w, nodes), Protocols: &protocols}
	go func() { _ = srv.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	return "http://" + l.Addr().String(), nodes
}

func TestControllerOverTheWire(t *testing.T) {
	w := &world{}
	c, _ := serve(t, w)
	ctx := t.Context()
	reg, err := c.Register(ctx, &drover.Node{ID: "n1", SecretID: "s-n1"})
	require.NoError(t, err)
	require.Equal(t, uint64(7), reg.Index)
	require.Equal(t, "s-n1", w.registered.SecretID)
	a, err := c.Pull(ctx, "n1", exchange.Seen{}, time.Second)
	require.NoError(t, err)
	require.EqualValues(t, 3, a.Allocs[0].Job.TaskGroups[0].Tasks[0].Config["n"])
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = c.Pull(short, "n1", exchange.Seen{Index: 9}, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	states := map[string]*drover.TaskState{"t": {StartedAt: time.Unix(5, 6)}}
	require.NoError(t, c.Push(ctx, "n1", []exchange.AllocUpdate{{ID: "a", TaskStates: states}}))
	require.True(t, w.pushed[0].TaskStates["t"].StartedAt.Equal(time.Unix(5, 6)))
	_, err = c.Heartbeat(ctx, "n2")
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
	c.identity.JoinToken = "wrong"
	_, err = c.Register(ctx, &drover.Node{ID: "n1"})
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
}

// dialled opens a node's tunnel; cut breaks it and waits for its end.
func dialled(t *testing.T, w *world) (remote exchange.Workloads, nodes *Nodes, cut func()) {
	t.Helper()
	c, nodes := serve(t, w)
	_, err := nodes.Workloads("n1")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.ServeWorkloads(ctx, w, func(string) { close(ready) }) }() // ends with cancel
	<-ready
	require.Eventually(t, func() bool { remote, err = nodes.Workloads("n1"); return err == nil }, time.Minute, time.Millisecond)
	return remote, nodes, func() {
		cancel()
		require.Error(t, <-ended)
	}
}

// A caller that closes a session has what it wanted; one whose connection breaks may come back. The program must not be killed
// for a broken connection, nor its receipt be forgotten before somebody wrote it down.
func TestSessionsOfACallerWhoIsLostAreNotClosed(t *testing.T) {
	w := &world{left: make(chan string)}
	remote, _, cut := dialled(t, w)
	ctx := t.Context()
	start := func() execution.Session {
		s, err := remote.StartExecution(ctx, "a", "", execution.Spec{Argv: []string{"cat"}})
		require.NoError(t, err)
		return s
	}
	ended := func() execution.Session {
		s := start()
		require.NoError(t, s.CloseStdin(ctx))
		f, err := s.Next(ctx)
		require.NoError(t, err)
		require.NotNil(t, f.Receipt)
		return s
	}
	for _, s := range []execution.Session{start(), ended()} {
		require.NoError(t, s.Close())
		require.Equal(t, "closed", <-w.left)
	}
	running, unread := start(), ended()
	select {
	case how := <-w.left:
		require.Fail(t, "the node forgot a receipt that nobody acknowledged", how)
	default:
	}
	go cut() // ends with the tunnel
	require.Equal(t, "lost", <-w.left)
	require.Equal(t, "lost", <-w.left)
	require.NoError(t, running.Close())
	require.NoError(t, unread.Close())
}

func TestWorkloadsThroughTheTunnel(t *testing.T) {
	w := &world{}
	remote, nodes, cut := dialled(t, w)

	t.Run("session", func(t *testing.T) { trySession(t, remote) })
	t.Run("detach", func(t *testing.T) {
		s, err := remote.StartExecution(t.Context(), "a", "", execution.Spec{Argv: []string{"cat"}})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	})
	t.Run("files", func(t *testing.T) { tryFiles(t, remote) })
	t.Run("logs", func(t *testing.T) { tryLogs(t, remote) })

	cut()
	require.Eventually(t, func() bool { _, err := nodes.Workloads("n1"); return err != nil }, time.Minute, time.Millisecond)
}

func trySession(t *testing.T, remote exchange.Workloads) {
	ctx := t.Context()
	_, err := remote.StartExecution(ctx, "a", "", execution.Spec{})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	s, err := remote.StartExecution(ctx, "a", "", execution.Spec{Argv: []string{"cat"}})
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() { written <- s.Write(ctx, []byte("hi\x00\xff")) }()
	f, err := s.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, []byte("hi\x00\xff"), f.Data)
	require.NoError(t, <-written)
	require.NoError(t, s.CloseStdin(ctx))
	f, err = s.Next(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4, f.Receipt.StdoutBytes)
	_, err = s.Next(ctx)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, s.Close())

	s, err = remote.StartExecution(ctx, "a", "", execution.Spec{Argv: []string{"cat"}})
	require.NoError(t, err)
	blocked := make(chan error, 1)
	go func() { blocked <- s.Write(ctx, []byte("block")) }()
	require.NoError(t, s.Signal(ctx, "INT"), "a blocked write must not hold up a signal")
	f, err = s.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, execution.CauseSignalled, f.Receipt.Cause)
	require.NoError(t, s.Close())
	require.Error(t, <-blocked)
}

func tryFiles(t *testing.T, remote exchange.Workloads) {
	ctx := t.Context()
	files := remote.Files("a", "")
	list, err := files.List(ctx, execution.FileRequest{})
	require.NoError(t, err)
	require.Equal(t, "a\nb\xff", list[0].Path)
	info, r, err := files.Read(ctx, execution.FileRequest{Path: "x"})
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "hello", string(data))
	require.EqualValues(t, 5, info.Size)
	_, _, err = files.Read(ctx, execution.FileRequest{Path: "missing"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.NoError(t, files.Write(ctx, execution.FileChange{Path: "big"}, strings.NewReader(strings.Repeat("y", 150_000))))
	require.Equal(t, drover.Invalid, drover.CodeOf(files.Write(ctx, execution.FileChange{Path: "big"}, strings.NewReader("short"))))
	body, err := remote.ReadFolder(ctx, "a", "x", 0, 0)
	require.NoError(t, err)
	data, err = io.ReadAll(body)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	require.Len(t, data, 200_000)
}

func tryLogs(t *testing.T, remote exchange.Workloads) {
	ctx := t.Context()
	_, err := remote.Logs(ctx, exchange.LogRequest{Task: "none"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	logs, err := remote.Logs(ctx, exchange.LogRequest{Task: "t"})
	require.NoError(t, err)
	n := 0
	for {
		_, err := logs.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
	require.NoError(t, logs.Close())
}
