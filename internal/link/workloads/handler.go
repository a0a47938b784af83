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
	"github.com/drover-project/drover/usage"
)

// Handler serves a node's workloads to control, over any number of connections. broken reports whether that connection has ended over
// which something was asked for.
func Handler(w exchange.Workloads, broken func(context.Context) bool) *http.ServeMux {
	mux := http.NewServeMux()
	opts := wire.HandlerOptions
	on := func(procedure string, f func(ctx context.Context, t *target) error) {
		wire.Unary(mux, procedure, opts, func(ctx context.Context, _ http.Header, t *target) (*wire.Empty, error) {
			return &wire.Empty{}, f(ctx, t)
		})
	}
	wire.Unary(mux, procExecutions, opts, func(ctx context.Context, _ http.Header, t *target) (*executionList, error) {
		list, err := w.Executions(ctx, t.AllocID)
		return &executionList{list}, err
	})
	wire.Unary(mux, procListFolder, opts, func(ctx context.Context, _ http.Header, t *target) (*folderList, error) {
		list, err := w.ListFolder(ctx, t.AllocID, t.Path)
		return &folderList{list}, err
	})
	wire.Unary(mux, procStatFolder, opts, func(ctx context.Context, _ http.Header, t *target) (*drover.AllocFileInfo, error) {
		info, err := w.StatFolder(ctx, t.AllocID, t.Path)
		return &info, err
	})
	wire.Unary(mux, procAllocChecks, opts, func(ctx context.Context, _ http.Header, t *target) (*checkList, error) {
		found, err := w.AllocChecks(ctx, t.AllocID)
		return &checkList{found}, err
	})
	wire.Unary(mux, procAllocStats, opts, func(ctx context.Context, _ http.Header, t *target) (*usage.AllocResourceUsage, error) {
		return w.AllocStats(ctx, t.AllocID, t.Task)
	})
	wire.Unary(mux, procNodeStats, opts, func(ctx context.Context, _ http.Header, _ *target) (*usage.HostStats, error) {
		return w.NodeStats(ctx)
	})
	wire.Unary(mux, procIdentity, opts, func(ctx context.Context, _ http.Header, _ *target) (*claimsText, error) {
		text, err := w.IdentityClaims(ctx)
		return &claimsText{text}, err
	})
	wire.Unary(mux, procFileList, opts, func(ctx context.Context, _ http.Header, t *target) (*fileList, error) {
		list, err := w.Files(t.AllocID, t.Task).List(ctx, t.File)
		return &fileList{list}, err
	})
	on(procRestart, func(ctx context.Context, t *target) error { return w.RestartTask(ctx, t.AllocID, t.Task, t.All) })
	on(procSignal, func(ctx context.Context, t *target) error { return w.SignalTask(ctx, t.AllocID, t.Task, t.Signal) })
	on(procRenew, func(ctx context.Context, _ *target) error { return w.RenewIdentity(ctx) })
	on(procCollect, func(ctx context.Context, t *target) error { return w.CollectGarbage(ctx, t.AllocID) })
	on(procFileApply, func(ctx context.Context, t *target) error {
		return w.Files(t.AllocID, t.Task).Apply(ctx, t.Changes)
	})
	download(mux, procReadFolder, opts, func(ctx context.Context, t *target) (*execution.FileInfo, io.ReadCloser, error) {
		r, err := w.ReadFolder(ctx, t.AllocID, t.Path, t.Offset, t.Limit)
		return nil, r, err
	})
	download(mux, procSnapshot, opts, func(ctx context.Context, t *target) (*execution.FileInfo, io.ReadCloser, error) {
		r, err := w.SnapshotFolder(ctx, t.AllocID)
		return nil, r, err
	})
	download(mux, procFileRead, opts, func(ctx context.Context, t *target) (*execution.FileInfo, io.ReadCloser, error) {
		info, r, err := w.Files(t.AllocID, t.Task).Read(ctx, t.File)
		return &info, r, err
	})
	download(mux, procFileArchive, opts, func(ctx context.Context, t *target) (*execution.FileInfo, io.ReadCloser, error) {
		r, err := w.Files(t.AllocID, t.Task).Archive(ctx, t.File)
		return nil, r, err
	})
	mux.Handle(procFileWrite, upload(procFileWrite, opts, func(ctx context.Context, p *writePart, r io.Reader) error {
		if p.Change == nil {
			return drover.Errorf(drover.Invalid, "change: must be set")
		}
		return w.Files(p.Target.AllocID, p.Target.Task).Write(ctx, *p.Change, r)
	}))
	mux.Handle(procFileExtract, upload(procFileExtract, opts, func(ctx context.Context, p *writePart, r io.Reader) error {
		return w.Files(p.Target.AllocID, p.Target.Task).Extract(ctx, p.Target.File, r)
	}))
	wire.Stream(mux, procLogs, opts, func(ctx context.Context, t *target, s *connect.ServerStream[exchange.LogChunk]) error {
		return serveLogs(ctx, w, t.Log, s)
	})
	open := &sessions{workloads: w, broken: broken, open: map[string]execution.Session{}}
	wire.Stream(mux, procSession, opts, open.serve)
	wire.Unary(mux, procSessionOp, opts, func(ctx context.Context, _ http.Header, op *sessionOp) (*wire.Empty, error) {
		return &wire.Empty{}, open.perform(ctx, op)
	})
	return mux
}

// serveLogs streams a log. An empty chunk comes first, so that the caller learns of a refusal before any text.
func serveLogs(ctx context.Context, w exchange.AllocFolder, r exchange.LogRequest, s *connect.ServerStream[exchange.LogChunk]) error {
	logs, err := w.Logs(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	if err := s.Send(&exchange.LogChunk{}); err != nil { // says: accepted
		return err
	}
	for {
		c, err := logs.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(&c); err != nil {
			return err
		}
	}
}

// download mounts a procedure that answers with what open opens.
func download(
	mux *http.ServeMux, procedure string, opts connect.HandlerOption,
	open func(context.Context, *target) (*execution.FileInfo, io.ReadCloser, error),
) {
	wire.Stream(mux, procedure, opts, func(ctx context.Context, t *target, s *connect.ServerStream[wire.Chunk]) error {
		info, body, err := open(ctx, t)
		if err != nil {
			return err
		}
		defer body.Close()
		if err := s.Send(&wire.Chunk{Info: info}); err != nil {
			return err
		}
		buf := make([]byte, wire.ChunkSize)
		for {
			n, err := body.Read(buf)
			if n > 0 {
				if err := s.Send(&wire.Chunk{Data: buf[:n]}); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// upload is a procedure that takes a head, and then bytes for accept.
func upload(procedure string, opts connect.HandlerOption, accept func(context.Context, *writePart, io.Reader) error) http.Handler {
	handle := func(ctx context.Context, s *connect.ClientStream[writePart]) (*connect.Response[wire.Empty], error) {
		if !s.Receive() {
			return nil, wire.Wrap(drover.Errorf(drover.Invalid, "link: no head: %v", s.Err()))
		}
		head := *s.Msg()
		if head.Target == nil {
			return nil, wire.Wrap(drover.Errorf(drover.Invalid, "target: must be set"))
		}
		if err := accept(ctx, &head, &partReader{stream: s}); err != nil {
			return nil, wire.Wrap(err)
		}
		return connect.NewResponse(&wire.Empty{}), nil
	}
	return connect.NewClientStreamHandler(procedure, handle, opts)
}

// partReader reads the data parts of an upload.
type partReader struct {
	stream *connect.ClientStream[writePart]
	rest   []byte
}

// Read returns the next bytes; a stream that broke is an error, never an early end.
func (r *partReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if !r.stream.Receive() {
			if err := r.stream.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		r.rest = r.stream.Msg().Data
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
