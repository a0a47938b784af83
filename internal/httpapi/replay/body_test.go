package replay_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/replay"
)

// closing counts how often it was closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func TestAShortBodyIsReadAgain(t *testing.T) {
	t.Parallel()
	from := &closing{Reader: strings.NewReader("hello")}
	b := replay.Keep(from)
	first := b.Reader()
	part := make([]byte, 2)
	_, err := io.ReadFull(first, part)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	_, err = first.Read(part)
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	for range 2 {
		all, err := io.ReadAll(b.Reader())
		require.NoError(t, err)
		require.Equal(t, "hello", string(all))
	}
	require.True(t, b.Whole())
	require.Zero(t, from.closed)
	b.End()
	require.Equal(t, 1, from.closed)
	_, err = b.Reader().Read(part)
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
}

func TestALongBodyIsReadOnce(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", replay.Most+1)
	b := replay.Keep(io.NopCloser(strings.NewReader(text)))
	all, err := io.ReadAll(b.Reader())
	require.NoError(t, err)
	require.Len(t, all, len(text))
	require.False(t, b.Whole())
}

func TestABodyIsKeptOnce(t *testing.T) {
	t.Parallel()
	b := replay.Keep(io.NopCloser(strings.NewReader("hello")))
	require.Same(t, b, replay.Keep(b.Reader()))
	r := b.Reader()
	_, err := r.Read(make([]byte, 1))
	require.NoError(t, err)
	rest := replay.Keep(r)
	require.NotSame(t, b, rest, "what was read already is not for the next")
	all, err := io.ReadAll(rest.Reader())
	require.NoError(t, err)
	require.Equal(t, "ello", string(all))
}

func TestNoBodyIsWhole(t *testing.T) {
	t.Parallel()
	for _, from := range []io.ReadCloser{nil, http.NoBody} {
		b := replay.Keep(from)
		require.True(t, b.Whole())
		all, err := io.ReadAll(b.Reader())
		require.NoError(t, err)
		require.Empty(t, all)
		b.End()
	}
}
