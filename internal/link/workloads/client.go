package workloads

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/usage"
)

// Client is exchange.Workloads of a node in another process.
type Client struct{ HTTP *http.Client }

// Base is the address of requests; where they go is the HTTP client's knowledge.
const Base = "http://node"

// NewClient returns a client that reaches the node through hc.
func NewClient(hc *http.Client) *Client { return &Client{hc} }

func nodeCall[Res any](ctx context.Context, c *Client, procedure string, t target) (Res, error) {
	return wire.Call(ctx, connect.NewClient[target, Res](c.HTTP, Base+procedure, wire.ClientOptions), connect.NewRequest(&t))
}

// Executions lists an allocation's executions.
func (c *Client) Executions(ctx context.Context, allocID string) ([]execution.Execution, error) {
	r, err := nodeCall[executionList](ctx, c, procExecutions, target{AllocID: allocID})
	return r.Executions, err
}

// ListFolder lists a folder of the allocation.
func (c *Client) ListFolder(ctx context.Context, allocID, path string) ([]drover.AllocFileInfo, error) {
	r, err := nodeCall[folderList](ctx, c, procListFolder, target{AllocID: allocID, Path: path})
	return r.Files, err
}

// StatFolder describes a file of the allocation.
func (c *Client) StatFolder(ctx context.Context, allocID, path string) (drover.AllocFileInfo, error) {
	return nodeCall[drover.AllocFileInfo](ctx, c, procStatFolder, target{AllocID: allocID, Path: path})
}

// ReadFolder reads a file of the allocation.
func (c *Client) ReadFolder(ctx context.Context, allocID, path string, offset, limit int64) (io.ReadCloser, error) {
	_, r, err := c.download(ctx, procReadFolder, target{AllocID: allocID, Path: path, Offset: offset, Limit: limit})
	return r, err
}

// SnapshotFolder reads what another node takes over.
func (c *Client) SnapshotFolder(ctx context.Context, allocID string) (io.ReadCloser, error) {
	_, r, err := c.download(ctx, procSnapshot, target{AllocID: allocID})
	return r, err
}

// RestartTask restarts tasks.
func (c *Client) RestartTask(ctx context.Context, allocID, task string, all bool) error {
	_, err := nodeCall[wire.Empty](ctx, c, procRestart, target{AllocID: allocID, Task: task, All: all})
	return err
}

// SignalTask signals a task.
func (c *Client) SignalTask(ctx context.Context, allocID, task, signal string) error {
	_, err := nodeCall[wire.Empty](ctx, c, procSignal, target{AllocID: allocID, Task: task, Signal: signal})
	return err
}

// AllocStats samples an allocation.
func (c *Client) AllocStats(ctx context.Context, allocID, task string) (*usage.AllocResourceUsage, error) {
	r, err := nodeCall[usage.AllocResourceUsage](ctx, c, procAllocStats, target{AllocID: allocID, Task: task})
	return &r, err
}

// NodeStats samples the machine.
func (c *Client) NodeStats(ctx context.Context) (*usage.HostStats, error) {
	r, err := nodeCall[usage.HostStats](ctx, c, procNodeStats, target{})
	return &r, err
}

// AllocChecks returns what an allocation's checks found.
func (c *Client) AllocChecks(ctx context.Context, allocID string) (map[string]service.CheckStatus, error) {
	r, err := nodeCall[checkList](ctx, c, procAllocChecks, target{AllocID: allocID})
	return r.Checks, err
}

// IdentityClaims returns what the node's token says.
func (c *Client) IdentityClaims(ctx context.Context) ([]byte, error) {
	r, err := nodeCall[claimsText](ctx, c, procIdentity, target{})
	return r.Text, err
}

// RenewIdentity has the node get another token.
func (c *Client) RenewIdentity(ctx context.Context) error {
	_, err := nodeCall[wire.Empty](ctx, c, procRenew, target{})
	return err
}

// CollectGarbage removes folders of ended allocations.
func (c *Client) CollectGarbage(ctx context.Context, allocID string) error {
	_, err := nodeCall[wire.Empty](ctx, c, procCollect, target{AllocID: allocID})
	return err
}

// Logs streams logs.
func (c *Client) Logs(ctx context.Context, r exchange.LogRequest) (exchange.LogReader, error) {
	ctx, cancel := context.WithCancel(ctx)
	client := connect.NewClient[target, exchange.LogChunk](c.HTTP, Base+procLogs, wire.ClientOptions)
	s, err := client.CallServerStream(ctx, connect.NewRequest(&target{Log: r}))
	if err != nil {
		cancel()
		return nil, wire.Unwrap(err)
	}
	l := &logReader{stream: s, cancel: cancel}
	if err := l.accepted(); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

type logReader struct {
	stream *connect.ServerStreamForClient[exchange.LogChunk]
	cancel context.CancelFunc
}

// accepted waits for the first, empty chunk, or the refusal.
func (l *logReader) accepted() error {
	if l.stream.Receive() {
		return nil
	}
	if err := l.stream.Err(); err != nil {
		return wire.Unwrap(err)
	}
	return drover.Errorf(drover.Unavailable, "link: the node ended the logs at once")
}

// Next returns the next chunk.
func (l *logReader) Next(ctx context.Context) (exchange.LogChunk, error) {
	defer context.AfterFunc(ctx, l.cancel)()
	if !l.stream.Receive() {
		if err := ctx.Err(); err != nil {
			return exchange.LogChunk{}, err
		}
		if err := l.stream.Err(); err != nil {
			return exchange.LogChunk{}, wire.Unwrap(err)
		}
		return exchange.LogChunk{}, io.EOF
	}
	return *l.stream.Msg(), nil
}

// Close ends the stream.
func (l *logReader) Close() error {
	l.cancel()
	return l.stream.Close()
}

// download begins to read a file. The first message describes it; the reader that is returned ends the call when
// closed. Errors: Unavailable if the node ended the stream before that.
func (c *Client) download(ctx context.Context, procedure string, t target) (execution.FileInfo, io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	client := connect.NewClient[target, wire.Chunk](c.HTTP, Base+procedure, wire.ClientOptions)
	s, err := client.CallServerStream(ctx, connect.NewRequest(&t))
	if err != nil {
		cancel()
		return execution.FileInfo{}, nil, wire.Unwrap(err)
	}
	if !s.Receive() {
		err := s.Err()
		cancel()
		_ = s.Close()
		if err == nil {
			err = drover.Errorf(drover.Unavailable, "link: the node ended the file before it began")
		}
		return execution.FileInfo{}, nil, wire.Unwrap(err)
	}
	var info execution.FileInfo
	if s.Msg().Info != nil {
		info = *s.Msg().Info
	}
	return info, &bodyReader{stream: s, cancel: cancel}, nil
}

type bodyReader struct {
	stream *connect.ServerStreamForClient[wire.Chunk]
	cancel context.CancelFunc
	rest   []byte
}

// Read returns the next bytes; a stream that broke is an error, never an early end.
func (b *bodyReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if !b.stream.Receive() {
			if err := b.stream.Err(); err != nil {
				return 0, wire.Unwrap(err)
			}
			return 0, io.EOF
		}
		b.rest = b.stream.Msg().Data
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close ends the stream.
func (b *bodyReader) Close() error {
	b.cancel()
	return b.stream.Close()
}

// Files gives access to a task's files.
func (c *Client) Files(allocID, task string) execution.Files {
	return &filesClient{c, target{AllocID: allocID, Task: task}}
}

type filesClient struct {
	c *Client
	t target
}

// List lists a directory.
func (f *filesClient) List(ctx context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	t := f.t
	t.File = r
	l, err := nodeCall[fileList](ctx, f.c, procFileList, t)
	return l.Files, err
}

// Read opens a file.
func (f *filesClient) Read(ctx context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	t := f.t
	t.File = r
	return f.c.download(ctx, procFileRead, t)
}

// Apply makes changes.
func (f *filesClient) Apply(ctx context.Context, changes []execution.FileChange) error {
	t := f.t
	t.Changes = changes
	_, err := nodeCall[wire.Empty](ctx, f.c, procFileApply, t)
	return err
}

// Write replaces a file.
func (f *filesClient) Write(ctx context.Context, change execution.FileChange, r io.Reader) error {
	return f.upload(ctx, procFileWrite, writePart{Target: &f.t, Change: &change}, r)
}

// Archive streams a directory as tar.
func (f *filesClient) Archive(ctx context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	t := f.t
	t.File = r
	_, body, err := f.c.download(ctx, procFileArchive, t)
	return body, err
}

// Extract unpacks a tar.
func (f *filesClient) Extract(ctx context.Context, r execution.FileRequest, tar io.Reader) error {
	t := f.t
	t.File = r
	return f.upload(ctx, procFileExtract, writePart{Target: &t}, tar)
}

// upload sends the head and then what r gives, in chunks. If r fails the call is cancelled, so that the node discards
// the part that it has.
func (f *filesClient) upload(ctx context.Context, procedure string, head writePart, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := connect.NewClient[writePart, wire.Empty](f.c.HTTP, Base+procedure, wire.ClientOptions).CallClientStream(ctx)
	err := s.Send(&head)
	buf := make([]byte, wire.ChunkSize)
	for err == nil {
		n, readErr := r.Read(buf)
		if n > 0 {
			err = s.Send(&writePart{Data: buf[:n]})
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return readErr // the cancelled stream tells the node that the upload is incomplete
		}
	}
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: the node ended early, its error comes with the response
		return wire.Unwrap(err)
	}
	_, err = s.CloseAndReceive()
	return wire.Unwrap(err)
}
