package peercall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Dial opens a Forward connection to the server at the rpc address.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// Client calls other servers.
type Client struct {
	self      string
	clock     clock.Clock
	transport *http.Transport
}

const (
	// callTimeout bounds a call whose context has no deadline.
	callTimeout = 10 * time.Second
	// How many connections to a server are kept while nothing goes over them, and for how long.
	keptConns = 32
	keptFor   = 90 * time.Second
)

// NewClient returns a client that says it is the server with the id self.
func NewClient(self string, dial Dial, c clock.Clock) *Client {
	return &Client{self, c, &http.Transport{
		DialContext:         func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) },
		MaxIdleConnsPerHost: keptConns, IdleConnTimeout: keptFor,
		// An answer that is compressed for who asked first passes as it is.
		DisableCompression: true,
	}}
}

// Close closes the connections that nothing goes over.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper: a request to http://ADDRESS/… goes to the server with that rpc address, as one of
// this server's. Errors: Unavailable, and those of the dialler.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	r = r.Clone(ctx)
	r.Header.Set(ServerHeader, c.self)
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, failed(ctx, r.URL.Host, err)
	}
	return resp, nil
}

// Call calls a procedure of the server at the rpc address. A context without a deadline ends after 10 s. Errors: the
// procedure's own; Unavailable if the server does not answer in time (it may or may not have done what was asked). Canceled if
// ctx was cancelled; NotImplemented if the server's version lacks the procedure.
func Call[Out any](ctx context.Context, c *Client, address, procedure string, in any) (out Out, err error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = c.clock.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	answer, err := c.call(ctx, address, procedure, in)
	if err != nil {
		return out, err
	}
	if err := Unmarshal(answer, &out); err != nil {
		return out, drover.Errorf(drover.Internal, "the result of %s: %w", procedure, err)
	}
	return out, nil
}

func (c *Client) call(ctx context.Context, address, procedure string, in any) ([]byte, error) {
	data, err := Marshal(in)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "the argument of %s: %w", procedure, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+Prefix+procedure, bytes.NewReader(data))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "calling %s: %w", procedure, err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := c.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := readAll(io.LimitReader(resp.Body, MaxBody+1), resp.ContentLength)
	switch {
	case err != nil:
		return nil, failed(ctx, address, err)
	case len(answer) > MaxBody:
		return nil, drover.Errorf(drover.TooLarge, "the result of %s has more than %d bytes", procedure, MaxBody)
	case resp.StatusCode == http.StatusOK:
		return answer, nil
	case resp.Header.Get(codeHeader) == "":
		return nil, drover.Errorf(drover.Unavailable, "server %s answers %s to %s", address, resp.Status, procedure)
	}
	return nil, drover.Errorf(drover.ParseCode(resp.Header.Get(codeHeader)), "%s", answer)
}

// failed is the error of who could not be asked, or did not answer.
func failed(ctx context.Context, address string, err error) error {
	var coded *drover.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return drover.Errorf(drover.Canceled, "asking server %s: %w", address, err)
	}
	return drover.Errorf(drover.Unavailable, "asking server %s: %w", address, err)
}

var handle = newHandle()

func newHandle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeFor[map[string]any]()
	h.TypeInfos = codec.NewTypeInfos([]string{"codec"}) // not the json tags: they hide secrets from the API
	return h
}

// readAll reads a body whose length is mostly known.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length <= 0 || length > MaxBody {
		return io.ReadAll(r)
	}
	data := make([]byte, length)
	_, err := io.ReadFull(r, data)
	return data, err
}

// rooms are what values are encoded into, as far as they were used before: some have megabytes.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// Marshal encodes a value as calls do.
func Marshal(v any) ([]byte, error) {
	room := rooms.Get().(*[]byte) // it has no others
	defer rooms.Put(room)
	out := (*room)[:0]
	err := codec.NewEncoderBytes(&out, handle).Encode(v)
	*room = out
	return bytes.Clone(out), err
}

// Unmarshal decodes what Marshal made. Malformed data is an error.
func Unmarshal(data []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil { // the codec panics on some malformed input
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	return codec.NewDecoderBytes(data, handle).Decode(v)
}
