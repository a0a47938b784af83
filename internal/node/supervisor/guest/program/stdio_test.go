package program

import (
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/buffer"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

func open(t *testing.T, spec execution.Spec) *Stdio {
	t.Helper()
	s, err := OpenStdio(spec, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.CloseTheirs()
		s.CloseOurs()
	})
	require.Len(t, s.theirs, 3)
	return s
}

func TestPipesOfAProgram(t *testing.T) {
	t.Parallel()
	s := open(t, execution.Spec{Stdin: true})
	require.Nil(t, s.TTY)
	_, err := s.Stdin.WriteString("in")
	require.NoError(t, err)
	b := make([]byte, 10)
	n, err := syscall.Read(s.theirs[0], b)
	require.NoError(t, err)
	require.Equal(t, "in", string(b[:n]))
	for i, text := range []string{"out", "err"} {
		_, err := syscall.Write(s.theirs[i+1], []byte(text))
		require.NoError(t, err)
	}
	s.CloseTheirs()
	for i, text := range []string{"out", "err"} {
		got, err := io.ReadAll(s.Out[i])
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}

func TestWithoutStdinThereIsNothingToRead(t *testing.T) {
	t.Parallel()
	s := open(t, execution.Spec{})
	require.Nil(t, s.Stdin)
	n, err := syscall.Read(s.theirs[0], make([]byte, 1))
	require.NoError(t, err)
	require.Zero(t, n)
	null, err := NullStdio()
	require.NoError(t, err)
	require.Len(t, null.theirs, 3)
	require.Equal(t, [2]*os.File{}, null.Out)
	_, err = syscall.Write(null.theirs[2], []byte("nobody reads it"))
	require.NoError(t, err)
	null.CloseTheirs()
	null.CloseTheirs() // again: nothing of others is closed
	null.CloseOurs()
}

func TestATerminal(t *testing.T) {
	t.Parallel()
	s := open(t, execution.Spec{TTY: true, Stdin: true, Size: execution.WindowSize{Rows: 7, Cols: 9}})
	require.Equal(t, []int{s.theirs[0], s.theirs[0], s.theirs[0]}, s.theirs)
	require.NotNil(t, s.TTY)
	require.Nil(t, s.Out[1], "it is one stream")
	size := func() [2]uint16 {
		w, err := unix.IoctlGetWinsize(s.theirs[0], unix.TIOCGWINSZ)
		require.NoError(t, err)
		return [2]uint16{w.Row, w.Col}
	}
	require.Equal(t, [2]uint16{7, 9}, size())
	s.Resize(execution.WindowSize{Rows: 30, Cols: 100})
	require.Equal(t, [2]uint16{30, 100}, size())
	s.Resize(execution.WindowSize{Rows: 30})
	require.Equal(t, [2]uint16{24, 80}, size(), "half a size is none")
	_, err := syscall.Write(s.theirs[1], []byte("a\n"))
	require.NoError(t, err)
	b := make([]byte, 10)
	n, err := s.TTY.Read(b)
	require.NoError(t, err)
	require.Equal(t, "a\r\n", string(b[:n]))

	apart := open(t, execution.Spec{TTY: true, TTYStderr: true})
	require.Nil(t, apart.Stdin)
	_, err = syscall.Write(apart.theirs[2], []byte("e\n"))
	require.NoError(t, err)
	n, err = apart.Out[1].Read(b)
	require.NoError(t, err)
	require.Equal(t, "e\n", string(b[:n]), "stderr is a pipe of its own")
}

// TestPipesBelongToTheUser, who may open /dev/stderr again.
func TestPipesBelongToTheUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives pipes away")
	}
	for _, tty := range []bool{false, true} {
		s, err := OpenStdio(execution.Spec{Stdin: true, TTY: tty}, &spawn.User{UID: 1234})
		require.NoError(t, err)
		for _, fd := range s.theirs {
			var st syscall.Stat_t
			require.NoError(t, syscall.Fstat(fd, &st))
			require.Equal(t, uint32(1234), st.Uid)
		}
		s.CloseTheirs()
		s.CloseOurs()
	}
	owned := &Stdio{owner: 1234} // as where pipes cannot be given away
	p, err := owned.pipe()
	require.NoError(t, err)
	var st syscall.Stat_t
	require.NoError(t, syscall.Fstat(p[0], &st))
	require.Equal(t, uint32(1234), st.Uid)
	require.NoError(t, syscall.Close(p[0]))
	require.NoError(t, syscall.Close(p[1]))
}

func TestAPumpMovesAllUpToTheEnd(t *testing.T) {
	t.Parallel()
	s := open(t, execution.Spec{})
	text := strings.Repeat("0123456789", 100_000)
	var writer sync.WaitGroup
	writer.Go(func() { // ends when all is written
		for rest := text; rest != ""; {
			n, err := syscall.Write(s.theirs[1], []byte(rest))
			if err != nil {
				break
			}
			rest = rest[n:]
		}
		s.CloseTheirs()
	})
	var got strings.Builder
	Pump(s.Out[0], func(p []byte) {
		if len(p) > wire.DataSize {
			t.Errorf("%d bytes at once", len(p))
		}
		got.Write(p)
	})
	writer.Wait()
	require.True(t, got.String() == text)
}

// TestAPumpTakesWhatIsThere after its deadline, and waits for nobody who still holds the pipe.
func TestAPumpTakesWhatIsThere(t *testing.T) {
	t.Parallel()
	s := open(t, execution.Spec{})
	_, err := syscall.Write(s.theirs[1], []byte("last words"))
	require.NoError(t, err)
	require.NoError(t, s.Out[0].SetReadDeadline(time.Now().Add(-time.Second)))
	var got string
	Pump(s.Out[0], func(p []byte) { got += string(p) })
	require.Equal(t, "last words", got)
	require.NoError(t, s.Out[1].Close())
	Pump(s.Out[1], func([]byte) { t.Error("it is closed") })
}

func TestBuffersAreOfOneFrame(t *testing.T) {
	t.Parallel()
	b := buffer.Get()
	require.Len(t, b, wire.HeaderSize+8+wire.DataSize)
	buffer.Put(b)
}
