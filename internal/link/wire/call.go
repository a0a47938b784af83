package wire

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/drover-project/drover/execution"
)

// Empty is the answer that says nothing.
type Empty struct{}

// Chunk is a piece of a byte stream; the first of a file that is read also has the file's info. In a tunnel it may tell of a server
// instead.
type Chunk struct {
	Info    *execution.FileInfo
	Data    []byte
	Suspect string `codec:",omitempty"` // the id of a server that does not answer another one
}

// ChunkSize is how many bytes a chunk has at most.
const ChunkSize = 64 << 10

// Unary mounts one procedure with the error translation.
func Unary[Req, Res any](
	mux *http.ServeMux, procedure string, opts connect.HandlerOption, f func(context.Context, http.Header, *Req) (*Res, error),
) {
	handle := func(ctx context.Context, r *connect.Request[Req]) (*connect.Response[Res], error) {
		res, err := f(ctx, r.Header(), r.Msg)
		if err != nil {
			return nil, Wrap(err)
		}
		return connect.NewResponse(res), nil
	}
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, handle, opts))
}

// Stream mounts a procedure that answers with a stream, with the error translation.
func Stream[Req, Res any](
	mux *http.ServeMux, procedure string, opts connect.HandlerOption, f func(context.Context, *Req, *connect.ServerStream[Res]) error,
) {
	handle := func(ctx context.Context, r *connect.Request[Req], s *connect.ServerStream[Res]) error {
		return Wrap(f(ctx, r.Msg, s))
	}
	mux.Handle(procedure, connect.NewServerStreamHandler(procedure, handle, opts))
}

// Call makes a unary call. Errors: ctx's own, else the code that the other side gave.
func Call[Req, Res any](ctx context.Context, client *connect.Client[Req, Res], req *connect.Request[Req]) (Res, error) {
	res, err := client.CallUnary(ctx, req)
	if err != nil {
		var zero Res
		if ctx.Err() != nil {
			return zero, ctx.Err()
		}
		return zero, Unwrap(err)
	}
	return *res.Msg, nil
}
