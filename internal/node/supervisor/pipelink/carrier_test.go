package pipelink

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSipHash compares with the reference implementation's vectors: key 00..0f, input 00, 0001, ...
func TestSipHash(t *testing.T) {
	t.Parallel()
	var key Key
	for i := range key {
		key[i] = byte(i)
	}
	in := make([]byte, 15)
	for i := range in {
		in[i] = byte(i)
	}
	require.Equal(t, uint64(0x726fdb47dd0e0e31), sum(&key, nil))
	require.Equal(t, uint64(0x74f839c593dc67fd), sum(&key, in[:1]))
	require.Equal(t, uint64(0xa129ca6149be45e5), sum(&key, in))
}

// TestReaderFindsChunks among bytes that were cut or made up.
func TestReaderFindsChunks(t *testing.T) {
	t.Parallel()
	key, other := Key{1}, Key{2}
	whole := chunk{kindData, 7, 1, []byte("hello")}.put(nil, &key, fromInit)
	stream := bytes.Join([][]byte{
		whole[10:], magic, chunk{kindData, 7, 1, []byte("forged")}.put(nil, &other, fromInit), whole,
		chunk{kindData, 7, 2, []byte("echoed")}.put(nil, &key, fromAgent), whole[:35], make([]byte, padding),
		chunk{kindClose, 7, 2, nil}.put(nil, &key, fromInit),
	}, nil)
	for _, in := range []io.Reader{bytes.NewReader(stream), &slow{stream}} {
		r := &reader{r: in, key: &key, d: fromInit}
		c, err := r.next()
		require.NoError(t, err)
		require.Equal(t, "hello", string(c.payload))
		c, err = r.next()
		require.NoError(t, err)
		require.Equal(t, kindClose, c.kind)
		_, err = r.next()
		require.ErrorIs(t, err, io.EOF)
	}
}

// slow gives one byte at a time.
type slow struct{ b []byte }

func (s *slow) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	p[0], s.b = s.b[0], s.b[1:]
	return 1, nil
}

type stream struct {
	*io.PipeReader
	io.Writer
}

// TestTwoConnections at once, each with its own bytes in order, however many; then one is closed by either end.
func TestTwoConnections(t *testing.T) {
	t.Parallel()
	toInit, agentOut := io.Pipe()
	agentIn, fromInitW := io.Pipe()
	key := Key{3}
	taken, accepted := make(chan int, 2), make(chan error)
	go func() { accepted <- Accept(toInit, fromInitW, key, clock.Wall{}, func(fd int) { taken <- fd }) }()
	// Both read the same stdout, as attached clients of dockerd do.
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	go func() { _, _ = io.Copy(fan{w1, w2}, agentIn) }()
	var ends []net.Conn
	for i, r := range []*io.PipeReader{r1, r2} {
		f, err := Dial(&stream{r, agentOut}, key, uint64(i+1), clock.Wall{})
		require.NoError(t, err)
		c, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		ends = append(ends, c)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	for i, c := range ends {
		_, err := c.Write([]byte{byte('a' + i)})
		require.NoError(t, err)
		inside := os.NewFile(uintptr(<-taken), "inside")
		one := make([]byte, 1)
		_, err = io.ReadFull(inside, one)
		require.NoError(t, err)
		require.Equal(t, byte('a'+i), one[0])
		go func() { _, _ = inside.Write(big) }()
		got := make([]byte, len(big))
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(big, got))
		if i == 0 {
			require.NoError(t, c.Close())
			_, err = inside.Read(one)
			require.ErrorIs(t, err, io.EOF)
			_ = inside.Close()
		} else {
			require.NoError(t, inside.Close())
			_, err = c.Read(one)
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, c.Close())
		}
	}
	require.NoError(t, agentOut.Close())
	require.ErrorIs(t, <-accepted, io.EOF)
	require.NoError(t, fromInitW.Close())
	_, _ = w1.Close(), w2.Close()
}

// fan writes to all who still listen.
type fan []io.Writer

func (f fan) Write(p []byte) (int, error) {
	for _, w := range f {
		_, _ = w.Write(p)
	}
	return len(p), nil
}
