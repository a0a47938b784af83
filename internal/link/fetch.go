package link

import (
	"context"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
)

// fetchHandler answers nodes with the data of allocations that theirs replace.
func fetchHandler(m exchange.Migrations, opts connect.HandlerOption) http.Handler {
	return connect.NewServerStreamHandler(procFetch, func(
		ctx context.Context, r *connect.Request[fetchRequest], s *connect.ServerStream[wire.Chunk],
	) error {
		if err := same(r.Header(), r.Msg.NodeID); err != nil {
			return wire.Wrap(err)
		}
		return wire.Wrap(m.Fetch(ctx, r.Msg.NodeID, r.Msg.AllocID, chunks{s}))
	}, opts)
}

// chunks writes to a stream.
type chunks struct {
	stream *connect.ServerStream[wire.Chunk]
}

func (c chunks) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		piece := p[:min(len(p), wire.ChunkSize)]
		if err := c.stream.Send(&wire.Chunk{Data: piece}); err != nil {
			return n, err
		}
		n, p = n+len(piece), p[len(piece):]
	}
	return n, nil
}

// Fetch implements exchange.Migrations.
func (c *Control) Fetch(ctx context.Context, nodeID, allocID string, w io.Writer) error {
	r := connect.NewRequest(&fetchRequest{nodeID, allocID})
	c.who().set(r.Header())
	s, err := c.fetch.CallServerStream(ctx, r)
	if err != nil {
		return wire.Unwrap(err)
	}
	defer func() { _ = s.Close() }() // what broke is in s.Err
	begun := false
	for s.Receive() {
		begun = true
		if _, err := w.Write(s.Msg().Data); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		if begun { // another server would begin anew
			return drover.Errorf(drover.Internal, "link: the stream broke: %w", wire.Unwrap(err))
		}
		return wire.Unwrap(err)
	}
	return nil
}

// Fetch implements exchange.Migrations. Once something was written, no other server is asked: that one would begin anew, in the middle of
// what is there.
func (d *Dialed) Fetch(ctx context.Context, nodeID, allocID string, w io.Writer) error {
	out := &begun{Writer: w}
	_, err := ask(ctx, d, func(ctx context.Context, c *Control) (wire.Empty, error) {
		if out.yes {
			return wire.Empty{}, drover.Errorf(drover.Internal, "link: the stream broke: the node speaks with another server now")
		}
		return wire.Empty{}, c.Fetch(ctx, nodeID, allocID, out)
	})
	return err
}

// begun knows whether something was written.
type begun struct {
	io.Writer
	yes bool
}

// Write writes on.
func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.Writer.Write(p)
}

var _ exchange.Migrations = (*Dialed)(nil)
