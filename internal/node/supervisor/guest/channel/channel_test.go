package channel

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// agent keeps the frames that were sent to it.
type agent struct {
	mu      sync.Mutex
	frames  [][]byte // guarded by mu
	removed []uint32 // guarded by mu
	err     error
}

func (a *agent) Write(frame []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.frames = append(a.frames, slices.Clone(frame))
	}
	return a.err
}

func (a *agent) Remove(channel uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removed = append(a.removed, channel)
}

func (a *agent) last(t *testing.T) (wire.Header, []byte) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	require.NotEmpty(t, a.frames)
	f := a.frames[len(a.frames)-1]
	h, err := wire.ParseHeader(f)
	require.NoError(t, err)
	return h, f[wire.HeaderSize:]
}

// data is a data frame's payload.
func data(offset int64, text string) []byte {
	head := wire.DataHead(0, 1, offset, len(text))
	return append(head[wire.HeaderSize:], text...)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	a := &agent{}
	c := Channel{Agent: a, ID: 7}
	c.Answer([]byte("yes"), nil)
	h, p := a.last(t)
	require.Equal(t, wire.Header{Length: 3, Kind: wire.KindReply, Channel: 7}, h)
	require.Equal(t, "yes", string(p))
	c.Fail(drover.Errorf(drover.Gone, "it is gone"))
	h, p = a.last(t)
	require.Equal(t, wire.KindError, h.Kind)
	require.Equal(t, drover.Gone, drover.CodeOf(wire.DecodeError(p)))
	require.Equal(t, []uint32{7}, a.removed)
	c.Ack(2, 1<<33)
	h, p = a.last(t)
	require.Equal(t, uint8(2), h.Stream)
	offset, err := wire.ParseAck(p)
	require.NoError(t, err)
	require.Equal(t, int64(1<<33), offset)
}

// TestAnInboxLosesNothing: whatever is sent in whatever pieces is read in whatever pieces, and acknowledged to its end.
func TestAnInboxLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(0, 5000, -1).Draw(rt, "text")
		acked := int64(0)
		b := NewInbox(func(offset int64) {
			require.Greater(rt, offset, acked)
			acked = offset
		})
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			b.Data(data(int64(len(text)-len(rest)), rest[:n]))
			rest = rest[n:]
		}
		b.End()
		require.True(rt, b.Ended())
		var got strings.Builder
		_, err := io.CopyBuffer(&got, struct{ io.Reader }{b}, make([]byte, rapid.IntRange(1, 100).Draw(rt, "buffer")))
		require.NoError(rt, err)
		require.Equal(rt, text, got.String())
		require.Equal(rt, int64(len(text)), acked)
	})
}

// TestAcknowledgementsAreFew while there is more to read.
func TestAcknowledgementsAreFew(t *testing.T) {
	t.Parallel()
	acks := 0
	b := NewInbox(func(int64) { acks++ })
	piece := strings.Repeat("x", 1000)
	for i := range 100 {
		b.Data(data(int64(i*1000), piece))
	}
	for range 99 {
		p, ok := b.Take()
		require.True(t, ok)
		b.Done(len(p))
	}
	require.Zero(t, acks, "less than a quarter of the window, and more is there")
	p, ok := b.Take()
	require.True(t, ok)
	b.Done(len(p))
	require.Equal(t, 1, acks)
}

func TestWhatCameBeforeTheAgentWentIsRead(t *testing.T) {
	t.Parallel()
	b := NewInbox(func(int64) {})
	b.Data(data(0, "last words"))
	b.Close()
	b.Data(data(10, "from nobody"))
	got, err := io.ReadAll(b)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "last words", string(got))
	require.False(t, b.Ended())
}

func TestAnAgentThatIgnoresTheWindowIsCutOff(t *testing.T) {
	t.Parallel()
	for what, frames := range map[string]func(*Inbox){
		"more than the window": func(b *Inbox) {
			for i := range int64(wire.Window/wire.DataSize + 2) {
				b.Data(data(i*wire.DataSize, strings.Repeat("x", wire.DataSize)))
			}
		},
		"a short frame": func(b *Inbox) { b.Data([]byte{1, 2, 3}) },
	} {
		b := NewInbox(func(int64) {})
		frames(b)
		n, err := io.Copy(io.Discard, b)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, what)
		require.LessOrEqual(t, n, int64(wire.Window+wire.DataSize), what)
	}
}

func TestAReaderWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewInbox(func(int64) {})
		var got []byte
		var ended bool
		go func() { // ends with the inbox
			for {
				p, ok := b.Take()
				if !ok {
					ended = true
					return
				}
				got = append(got, p...)
			}
		}()
		synctest.Wait()
		require.Empty(t, got)
		b.Data(data(0, "a"))
		synctest.Wait()
		require.Equal(t, "a", string(got))
		require.False(t, ended)
		b.End()
		synctest.Wait()
		require.True(t, ended)
	})
}

func TestNobodySendsBeyondTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		o := NewOutbox()
		sent, acked := int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if sent-acked < wire.Window && rapid.Bool().Draw(rt, "send") {
				n := rapid.IntRange(1, 2*wire.Window).Draw(rt, "n")
				offset, granted := o.Reserve(n)
				require.Equal(rt, sent, offset)
				require.Positive(rt, granted)
				require.LessOrEqual(rt, granted, n)
				sent += int64(granted)
			} else { // an agent may say anything
				to := rapid.Int64Range(-1, sent+1000).Draw(rt, "ack")
				o.Ack(to)
				acked = max(acked, min(to, sent))
			}
			require.LessOrEqual(rt, sent-acked, int64(wire.Window))
		}
	})
}

func TestASenderWaitsForTheAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &agent{}
		tr := NewTransfer(Channel{Agent: a, ID: 3})
		written, failed := 0, error(nil)
		go func() { // ends when the agent is gone
			for failed == nil {
				var n int
				n, failed = tr.Write(make([]byte, wire.Window))
				written += n
			}
		}()
		synctest.Wait()
		require.Equal(t, wire.Window, written)
		ack := wire.Ack(0, 3, 1000)
		tr.Frame(wire.Header{Kind: wire.KindAck}, ack[wire.HeaderSize:])
		tr.Frame(wire.Header{Kind: wire.KindAck}, []byte{1}) // is none
		tr.Frame(wire.Header{Kind: 200}, nil)                // from a newer agent
		synctest.Wait()
		h, p := a.last(t)
		require.Equal(t, wire.KindData, h.Kind)
		offset, b, err := wire.ParseData(p)
		require.NoError(t, err)
		require.Equal(t, int64(wire.Window), offset)
		require.Len(t, b, 1000, "what was acknowledged may be sent anew")
		tr.Gone(false)
		synctest.Wait()
		require.ErrorIs(t, failed, io.ErrClosedPipe)
		_, err = tr.In.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

func TestATransferCarriesBothWays(t *testing.T) {
	t.Parallel()
	a := &agent{}
	tr := NewTransfer(Channel{Agent: a, ID: 3})
	tr.Frame(wire.Header{Kind: wire.KindData}, data(0, "in"))
	tr.Frame(wire.Header{Kind: wire.KindEnd}, nil)
	got, err := io.ReadAll(tr.In)
	require.NoError(t, err)
	require.Equal(t, "in", string(got))
	n, err := tr.Write([]byte(strings.Repeat("o", wire.DataSize+1)))
	require.NoError(t, err)
	require.Equal(t, wire.DataSize+1, n)
	require.Len(t, a.frames, 3, "an acknowledgement and two frames of data")
	a.err = errors.New("broken")
	_, err = tr.Write([]byte("x"))
	require.ErrorIs(t, err, a.err)
}
