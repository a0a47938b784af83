package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// An error crosses the wire with its code and its words; what the other side did not say is a broken connection.
func TestErrorsCrossTheWire(t *testing.T) {
	t.Parallel()
	for code := drover.Internal; code <= drover.NotImplemented; code++ {
		_, known := connectCodes[code]
		require.True(t, known, "%s has no code of connect's", code)
		got := Unwrap(Wrap(fmt.Errorf("asking: %w", drover.Errorf(code, "because %d", code))))
		require.Equal(t, code, drover.CodeOf(got))
		require.Equal(t, fmt.Sprintf("asking: because %d", code), got.Error())
	}
	require.NoError(t, Wrap(nil))
	require.NoError(t, Unwrap(nil))
	require.ErrorIs(t, Unwrap(Wrap(context.Canceled)), context.Canceled)
	require.ErrorIs(t, Unwrap(Wrap(fmt.Errorf("pulling: %w", context.DeadlineExceeded))), context.DeadlineExceeded)
	require.ErrorIs(t, Unwrap(io.EOF), io.EOF)
	require.ErrorIs(t, Unwrap(context.Canceled), context.Canceled)
	for _, err := range []error{errors.New("reset"), connect.NewError(connect.CodeUnknown, errors.New("EOF"))} {
		require.Equal(t, drover.Unavailable, drover.CodeOf(Unwrap(err)), err)
	}
	stranger := connect.NewError(connect.CodeUnauthenticated, errors.New("a proxy's"))
	require.Equal(t, drover.Unauthorized, drover.CodeOf(Unwrap(stranger)))
	require.Equal(t, drover.Internal, drover.CodeOf(Unwrap(Wrap(errors.New("odd")))), "a fault of the other side")
}

// A message goes behind what the buffer has, whether it fits there or not, and is not changed by the next one.
func TestMarshalAppend(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, room := range []int{0, 100, 50_000} {
		dst := append(make([]byte, 0, room), "head"...)
		out, err := Msgpack{}.MarshalAppend(dst, Chunk{Data: []byte(long)})
		require.NoError(t, err)
		require.Equal(t, "head", string(out[:4]))
		_, err = Msgpack{}.Marshal(Chunk{Data: []byte(strings.Repeat("y", 6000))})
		require.NoError(t, err)
		var got Chunk
		require.NoError(t, Msgpack{}.Unmarshal(out[4:], &got))
		require.Equal(t, long, string(got.Data))
	}
}
