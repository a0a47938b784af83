package link

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Fetch writes the station's data, and then waits like one that has more of it.
func (s *station) Fetch(ctx context.Context, _, _ string, w io.Writer) error {
	s.mu.Lock()
	data, whole := s.data, s.whole
	s.mu.Unlock()
	if _, err := io.WriteString(w, data); err != nil || whole {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// leaving leaves the main server with the first byte.
type leaving struct {
	bytes.Buffer
	leave func()
}

func (l *leaving) Write(p []byte) (int, error) {
	if l.leave != nil {
		l.leave()
		l.leave = nil
	}
	return l.Buffer.Write(p)
}

// A node that speaks with another server in the middle of what it fetches does not get the beginning once more behind it.
func TestWhatIsFetchedIsOfOneServer(t *testing.T) {
	t.Parallel()
	a, b := newStation(t, "a"), newStation(t, "b")
	a.data, b.data, b.whole = "half of", "the whole", true
	d := keeps(t, "", a.addr, b.addr)
	leave := func() {
		d.mu.Lock()
		main := d.main
		d.mu.Unlock()
		d.leave(main, io.ErrUnexpectedEOF)
	}
	for d.mainAddress() != a.addr { // it begins with either
		leave()
	}
	got := &leaving{leave: leave}
	err := d.Fetch(t.Context(), "n1", "x", got)
	require.Equal(t, drover.Internal, drover.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "the stream broke")
	require.Equal(t, "half of", got.String())

	got = &leaving{}
	require.NoError(t, d.Fetch(t.Context(), "n1", "x", got))
	require.Equal(t, "the whole", got.String())
}

func (d *Dialed) mainAddress() string {
	s, _, _ := d.mainServer()
	return s.address
}
