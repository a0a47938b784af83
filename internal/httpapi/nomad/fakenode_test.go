package nomad_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/usage"
)

// fakeNode is a node with one allocation whose folder is a map.
type fakeNode struct {
	exchange.Workloads // what is not here must not be called
	mu                 sync.Mutex
	files              map[string]string
	calls              []string
	logs               chan any      // chunks, then an error
	sessions           chan *session // those started
	noExec             error
	reading            atomic.Int32 // calls of Next under way
	closed             chan int32   // how many they were at each Close of logs
}

func newFakeNode() *fakeNode {
	return &fakeNode{
		files:    map[string]string{"alloc/logs/t.stdout.0": "hello\n", "t/local/x.html": "<script>alert(1)</script>"},
		logs:     make(chan any, 16),
		sessions: make(chan *session, 16),
		closed:   make(chan int32, 16),
	}
}

func (n *fakeNode) took(format string, args ...any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, fmt.Sprintf(format, args...))
	return nil
}

func (n *fakeNode) file(path string) (string, error) {
	if strings.Contains(path, "..") {
		return "", drover.Errorf(drover.Invalid, "path %q leaves the allocation's folder", path)
	}
	body, ok := n.files[strings.TrimPrefix(path, "/")]
	if !ok {
		return "", drover.Errorf(drover.NotFound, "no file %q in the allocation's folder", path)
	}
	return body, nil
}

func (n *fakeNode) ListFolder(_ context.Context, alloc, path string) ([]drover.AllocFileInfo, error) {
	return []drover.AllocFileInfo{{Name: "alloc", IsDir: true, FileMode: "drwxr-xr-x", ModTime: "2026-11-21T06:00:00Z"}}, nil
}

func (n *fakeNode) StatFolder(_ context.Context, alloc, path string) (drover.AllocFileInfo, error) {
	body, err := n.file(path)
	return drover.AllocFileInfo{Name: path, Size: int64(len(body)), FileMode: "-rw-r--r--", ModTime: "2026-11-21T06:00:00Z"}, err
}

func (n *fakeNode) SnapshotFolder(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("tar")), nil
}

func (n *fakeNode) ReadFolder(_ context.Context, alloc, path string, offset, limit int64) (io.ReadCloser, error) {
	body, err := n.file(path)
	if err != nil {
		return nil, err
	}
	r := strings.NewReader(body)
	_, _ = r.Seek(min(offset, int64(len(body))), io.SeekStart)
	if limit > 0 {
		return io.NopCloser(io.LimitReader(r, limit)), nil
	}
	return io.NopCloser(r), nil
}

func (n *fakeNode) Logs(_ context.Context, r exchange.LogRequest) (exchange.LogReader, error) {
	from := r.Path
	if r.File != "" {
		from = "from " + r.File
	}
	if r.Since != 0 {
		from = "since " + time.UnixMilli(r.Since).UTC().Format(time.RFC3339Nano)
	}
	if r.Search != "" {
		from += " search " + r.Search
	}
	_ = n.took("logs %s %s %s %d %t %s", r.Task, r.Type, r.Origin, r.Offset, r.Follow, from)
	return n, nil
}

func (n *fakeNode) Next(ctx context.Context) (exchange.LogChunk, error) {
	n.reading.Add(1)
	defer n.reading.Add(-1)
	select {
	case l := <-n.logs:
		if err, ok := l.(error); ok {
			return exchange.LogChunk{}, err
		}
		return l.(exchange.LogChunk), nil
	case <-ctx.Done():
		return exchange.LogChunk{}, ctx.Err()
	}
}

func (n *fakeNode) Close() error {
	n.closed <- n.reading.Load()
	return nil
}

func (n *fakeNode) RestartTask(_ context.Context, alloc, task string, all bool) error {
	return n.took("restart %s %t", task, all)
}

func (n *fakeNode) SignalTask(_ context.Context, alloc, task, signal string) error {
	return n.took("signal %s %s", task, signal)
}

func (n *fakeNode) AllocChecks(context.Context, string) (map[string]service.CheckStatus, error) {
	return map[string]service.CheckStatus{
		"c1": {ID: "c1", Check: "up", Mode: "healthiness", Service: "web", Status: service.CheckSuccess},
	}, nil
}

func (n *fakeNode) AllocStats(context.Context, string, string) (*usage.AllocResourceUsage, error) {
	return &usage.AllocResourceUsage{ResourceUsage: &usage.ResourceUsage{
		MemoryStats: &usage.MemoryStats{RSS: 42},
		CpuStats:    &usage.CpuStats{},
	}, Timestamp: 5}, nil
}

func (n *fakeNode) NodeStats(context.Context) (*usage.HostStats, error) {
	return &usage.HostStats{Memory: &usage.HostMemoryStats{Total: 99}, Uptime: 3}, nil
}

// introducer tells what it was asked for.
type introducer struct{}

func (introducer) Introduction(_ context.Context, name, pool string, ttl time.Duration) (string, error) {
	return fmt.Sprintf("ey.%s.%s.%s", name, pool, ttl), nil
}

func (n *fakeNode) IdentityClaims(context.Context) ([]byte, error) {
	return []byte(`{"sub": "node:global:default:n:default", "nomad_node_id": "n"}`), nil
}

func (n *fakeNode) RenewIdentity(context.Context) error { return n.took("renew identity") }

func (n *fakeNode) CollectGarbage(_ context.Context, alloc string) error {
	return n.took("collect %s", alloc)
}

func (n *fakeNode) StartExecution(_ context.Context, alloc, task string, spec execution.Spec) (execution.Session, error) {
	if n.noExec != nil {
		return nil, n.noExec
	}
	s := &session{
		spec: spec, frames: make(chan execution.Frame), stdin: make(chan []byte), closed: make(chan struct{}),
		sizes: make(chan execution.WindowSize, 4),
	}
	go s.run() // ends with the command or with Close
	n.sessions <- s
	return s, nil
}

// session runs one of a few commands.
type session struct {
	spec   execution.Spec
	frames chan execution.Frame
	stdin  chan []byte // nil slice: closed
	once   sync.Once
	closed chan struct{}
	sizes  chan execution.WindowSize
}

func (s *session) out(f execution.Frame) bool {
	select {
	case s.frames <- f:
		return true
	case <-s.closed:
		return false
	}
}

func (s *session) print(stream execution.Stream, text string) bool {
	return s.out(execution.Frame{Stream: stream, Data: []byte(text)})
}

func (s *session) run() {
	code, cause, reason := 0, execution.CauseExited, ""
	s.out(execution.Frame{Started: true, Pid: 1})
	switch s.spec.Argv[0] {
	case "echo":
		s.print(execution.Stdout, strings.Join(s.spec.Argv[1:], " ")+"\n")
		s.print(execution.Stderr, "warning\n")
		code = 3
	case "cat":
		for {
			var p []byte
			select {
			case p = <-s.stdin:
			case <-s.closed:
				return
			}
			if p == nil {
				s.out(execution.Frame{Receipt: &execution.Receipt{Cause: cause}})
				return
			}
			s.print(execution.Stdout, string(p))
		}
	case "flood":
		chunk := string(bytes.Repeat([]byte("0123456789abcdef"), 2<<10))
		for range 160 { // 5 MiB
			s.print(execution.Stdout, chunk)
		}
	case "sleep":
		<-s.closed
		return
	case "missing":
		code, cause, reason = 127, execution.CauseStartFailed, "no such file"
	}
	s.out(execution.Frame{Receipt: &execution.Receipt{ExitCode: code, Cause: cause, Error: reason}})
}

func (s *session) Next(ctx context.Context) (execution.Frame, error) {
	select {
	case f := <-s.frames:
		return f, nil
	case <-ctx.Done():
		return execution.Frame{}, ctx.Err()
	}
}

func (s *session) Write(ctx context.Context, p []byte) error {
	select {
	case s.stdin <- bytes.Clone(p):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) CloseStdin(ctx context.Context) error {
	select {
	case s.stdin <- nil:
	case <-ctx.Done():
	}
	return nil
}

func (s *session) Resize(_ context.Context, size execution.WindowSize) error {
	s.sizes <- size
	return nil
}
func (s *session) Signal(context.Context, string) error { return nil }
func (s *session) Close() error                         { s.once.Do(func() { close(s.closed) }); return nil }
