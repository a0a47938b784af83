package supervisor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Files gives access to the guest's files.
func (c *Client) Files() execution.Files { return files{c} }

// files does file work over a client; every request has a channel of its own.
type files struct{ c *Client }

// request encodes what most operations on files take.
func request(r execution.FileRequest) []byte {
	var e wire.Encoder
	e.FileRequest(r)
	return e.B
}

// List implements execution.Files.
func (f files) List(ctx context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	k, err := f.c.open(wire.OpFileList, request(r))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(newStream(ctx, k))
	if err != nil {
		return nil, err
	}
	d := wire.Decoder{B: b}
	list := []execution.FileInfo{}
	for len(d.B) > 0 {
		list = append(list, d.FileInfo())
	}
	return list, d.Err
}

// Read implements execution.Files.
func (f files) Read(ctx context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	k, err := f.c.open(wire.OpFileRead, request(r))
	if err != nil {
		return execution.FileInfo{}, nil, err
	}
	s := newStream(ctx, k)
	m, err := k.next(ctx)
	if err != nil {
		_ = s.Close()
		return execution.FileInfo{}, nil, err
	}
	d := wire.Decoder{B: m.payload}
	return d.FileInfo(), s, d.Err
}

// Archive implements execution.Files.
func (f files) Archive(ctx context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	k, err := f.c.open(wire.OpArchive, request(r))
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, k)
	if err := s.peek(); err != nil && !errors.Is(err, io.EOF) { // a missing directory is an error now, not later
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// applyBatch is how much data goes into one message; larger files are streamed.
const applyBatch = 1 << 20

// Apply implements execution.Files.
func (f files) Apply(ctx context.Context, changes []execution.FileChange) error {
	for len(changes) > 0 {
		if len(changes[0].Data) > applyBatch {
			c := changes[0]
			data := c.Data
			c.Data = nil
			if err := f.Write(ctx, c, bytes.NewReader(data)); err != nil {
				return err
			}
			changes = changes[1:]
			continue
		}
		n := batch(changes)
		var e wire.Encoder
		e.Uint(uint64(n))
		for _, c := range changes[:n] {
			e.FileChange(c)
		}
		if err := f.finish(ctx, wire.OpFileApply, e.B, nil); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// batch says how many changes go into one message, at least one.
func batch(changes []execution.FileChange) int {
	size := 0
	for i, c := range changes {
		const overhead = 64
		size += len(c.Data) + len(c.Path) + overhead
		if i > 0 && size > applyBatch || len(c.Data) > applyBatch {
			return i
		}
	}
	return len(changes)
}

// Write implements execution.Files.
func (f files) Write(ctx context.Context, change execution.FileChange, r io.Reader) error {
	var e wire.Encoder
	e.FileChange(change)
	return f.finish(ctx, wire.OpFileWrite, e.B, r)
}

// Extract implements execution.Files.
func (f files) Extract(ctx context.Context, r execution.FileRequest, tar io.Reader) error {
	return f.finish(ctx, wire.OpExtract, request(r), tar)
}

// finish opens a channel, sends it data if there is any, and waits for its end.
func (f files) finish(ctx context.Context, op wire.Op, req []byte, data io.Reader) error {
	k, err := f.c.open(op, req)
	if err != nil {
		return err
	}
	s := newStream(ctx, k)
	defer func() { _ = s.Close() }()
	if data != nil {
		if err := s.upload(ctx, data); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, s)
	return err
}

// stream is a file channel: what the supervisor sends, up to its end.
type stream struct {
	ctx      context.Context // an io.Reader's lifetime
	k        *call
	rest     []byte
	consumed int64
	told     int64
	err      error
	close    sync.Once
}

// newStream returns the reader of a channel. ctx bounds all of its reads.
func newStream(ctx context.Context, k *call) *stream { return &stream{ctx: ctx, k: k} }

// Read returns data, then io.EOF at the end, or the supervisor's error.
func (s *stream) Read(p []byte) (int, error) {
	if err := s.peek(); err != nil {
		return 0, err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	s.consumed += int64(n)
	if s.consumed-s.told >= wire.Window/4 {
		s.told = s.consumed
		_ = s.k.c.write(wire.Ack(uint8(execution.Stdout), s.k.id, s.told)) // next reports a lost connection
	}
	return n, nil
}

// peek waits for data.
func (s *stream) peek() error {
	for len(s.rest) == 0 && s.err == nil {
		m, err := s.k.next(s.ctx)
		switch {
		case err != nil:
			s.err = err
		case m.kind == wire.KindEnd:
			s.err = io.EOF
			s.k.forget()
		case m.kind == wire.KindData:
			_, s.rest, s.err = wire.ParseData(m.payload)
		}
	}
	if len(s.rest) > 0 {
		return nil
	}
	return s.err
}

// Close ends the work; it is fine after the end.
func (s *stream) Close() error {
	s.close.Do(func() {
		s.k.forget()
		if s.err == nil {
			_ = s.k.c.write(wire.Frame(wire.KindClose, 0, s.k.id, nil))
		}
		s.k.end(drover.Errorf(drover.Gone, "the file was closed"))
	})
	return nil
}

// upload sends data. When the supervisor gave up, its error is what Read returns.
func (s *stream) upload(ctx context.Context, r io.Reader) error {
	buf := make([]byte, wire.DataSize)
	var offset int64
	for {
		n, err := r.Read(buf)
		if n > 0 {
			sent, serr := s.k.send(ctx, execution.Stdin, offset, buf[:n], nil)
			offset += int64(sent)
			if serr != nil {
				return serr
			}
			if s.k.answered() {
				return nil
			}
		}
		if err == io.EOF {
			return s.k.c.write(wire.Frame(wire.KindEnd, 0, s.k.id, nil))
		}
		if err != nil {
			return drover.Errorf(drover.CodeOf(err), "reading what is to be written: %w", err)
		}
	}
}
