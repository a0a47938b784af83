package term

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

func TestALiveScreenFitsItsTerminal(t *testing.T) {
	t.Parallel()
	ours, its, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer its.Close()
	require.NoError(t, pty.Setsize(its, &pty.Winsize{Rows: 4, Cols: 20}))
	l := Live(&App{Out: its})
	require.True(t, l.Refreshes())
	require.NoError(t, l.Show(func(w io.Writer) error {
		return Table(w, "", "ID|About", [][]string{{"a", strings.Repeat("x", 40)}, {"b", ""}, {"c", ""}, {"d", ""}})
	}))
	require.EqualError(t, l.Show(func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("broken")
	}), "broken")
	l.Close()
	got, buf := "", make([]byte, 1024)
	for !strings.Contains(got, ownScreen) {
		n, err := ours.Read(buf)
		require.NoError(t, err)
		got += string(buf[:n])
	}
	require.NotContains(t, got, "half")
	got = strings.ReplaceAll(got, "\r\r\n", "\r\n") // the terminal's own
	require.Equal(t, otherScreen+firstPlace+"ID  About"+clearLine+"\r\na   "+strings.Repeat("x", 15)+"…"+clearLine+
		"\r\n…"+clearLine+"\r\n"+clearBelow+ownScreen, got)
}

func TestWithoutATerminalTextFollowsText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := Live(&App{Out: &b})
	require.False(t, l.Refreshes())
	for range 2 {
		require.NoError(t, l.Show(func(w io.Writer) error { return Table(w, "none", "A", nil) }))
	}
	l.Close()
	require.Equal(t, "none\nnone\n", b.String())
}
