package snapshot

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A damaged length that is longer than any number was an error without a code: an archive that was damaged there was answered as
// a fault of the server's.
func TestARecordWithoutALengthIsInvalid(t *testing.T) {
	t.Parallel()
	next := func(in io.Reader) error {
		_, _, err := (&recordReader{r: bufio.NewReader(in)}).next()
		return err
	}
	for _, text := range []string{
		"\x01" + strings.Repeat("\xff", 10), "\x01" + strings.Repeat("\xff", 9) + "\x7f", "\x01" + strings.Repeat("\x80", 20), "\x01\x80", "\x01",
		"", "\x01\xff\xff\xff\xff\x7f",
	} {
		err := next(strings.NewReader(text))
		require.Error(t, err, "%q", text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%q: %v", text, err)
	}
	require.ErrorIs(t, next(io.MultiReader(strings.NewReader("\x01\x80"), iotest.ErrReader(io.ErrClosedPipe))), io.ErrClosedPipe)
	var out bytes.Buffer
	require.NoError(t, (&recordWriter{w: &out}).put(recEnd, bytes.Repeat([]byte("x"), 300)))
	r := &recordReader{r: bufio.NewReader(&out)}
	kind, payload, err := r.next()
	require.NoError(t, err)
	require.Equal(t, recEnd, kind)
	require.Len(t, payload, 300)
}
