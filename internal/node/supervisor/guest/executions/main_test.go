package executions

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/guest/guesttest"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// guest is a table of executions on this machine.
type guest struct {
	*Table
	finished chan struct{}
}

func newGuest(t *testing.T, boot wire.Boot) *guest {
	t.Helper()
	g := &guest{finished: make(chan struct{}, 1000)}
	g.Table = NewTable(guesttest.Launcher(t, boot), func() { g.finished <- struct{}{} })
	t.Cleanup(func() {
		g.mu.Lock()
		all := g.allLocked()
		g.mu.Unlock()
		for _, x := range all {
			x.kill(execution.CauseKilled)
		}
		for g.Busy() {
			<-g.finished
		}
	})
	return g
}

// reader is an agent with one session.
type reader struct {
	*guesttest.Agent
	*Session
	pos [2]int64
	in  int64
}

func (g *guest) reader() *reader {
	a := guesttest.NewAgent()
	return &reader{Agent: a, Session: g.Session(channel.Channel{Agent: a, ID: 5})}
}

// start starts a command and waits until it runs.
func (g *guest) start(t *testing.T, spec execution.Spec) *reader {
	t.Helper()
	r := g.reader()
	go r.Start(wire.Exec{Spec: spec}, nil) // ends with the session
	f := r.Agent.Next(t)
	require.Equal(t, wire.KindStarted, f.Kind)
	d := wire.Decoder{B: f.Payload}
	require.Positive(t, d.Int())
	return r
}

// attach joins a command from the offsets on.
func (g *guest) attach(t *testing.T, id string, from execution.Offsets) *reader {
	t.Helper()
	r := g.reader()
	r.pos = [2]int64{from.Stdout, from.Stderr}
	go r.Attach(id, from) // ends with the session
	require.Equal(t, wire.KindStarted, r.Agent.Next(t).Kind)
	return r
}

func script(id, text string) execution.Spec {
	return execution.Spec{ID: id, Argv: []string{"/bin/sh", "-c", text}}
}

// ack acknowledges what was read of a stream.
func (r *reader) ack(i int) {
	p := wire.Ack(uint8(i), 5, r.pos[i])[wire.HeaderSize:]
	r.Frame(wire.Header{Kind: wire.KindAck, Stream: uint8(i) + uint8(execution.Stdout)}, p)
}

// read reads until the receipt, or until stdout ends with the text, and acknowledges everything.
func (r *reader) read(t *testing.T, until string) (out [2]string, receipt *execution.Receipt) {
	t.Helper()
	for {
		f := r.Agent.Next(t)
		switch f.Kind {
		case wire.KindExit:
			d := wire.Decoder{B: f.Payload}
			got := d.Receipt()
			require.NoError(t, d.Err)
			return out, &got
		case wire.KindData:
			offset, p, err := wire.ParseData(f.Payload)
			require.NoError(t, err)
			i := int(f.Stream) - int(execution.Stdout)
			require.Equal(t, r.pos[i], offset, "nothing is left out or sent twice")
			r.pos[i] += int64(len(p))
			out[i] += string(p)
			r.ack(i)
			if n := len(out[0]) - len(until); until != "" && n >= 0 && out[0][n:] == until {
				return out, nil
			}
		case wire.KindAck:
		default:
			require.Fail(t, "unexpected", "kind %d: %q", f.Kind, f.Payload)
		}
	}
}

// end reads to the receipt.
func (r *reader) end(t *testing.T) (out [2]string, receipt execution.Receipt) {
	t.Helper()
	out, got := r.read(t, "")
	require.NotNil(t, got)
	return out, *got
}

// write sends stdin.
func (r *reader) write(text string) {
	head := wire.DataHead(uint8(execution.Stdin), 5, r.in, len(text))
	r.in += int64(len(text))
	r.Frame(wire.Header{Kind: wire.KindData}, append(head[wire.HeaderSize:], text...))
}

func (r *reader) closeStdin() { r.Frame(wire.Header{Kind: wire.KindEnd}, nil) }

func (r *reader) signal(name string) {
	var e wire.Encoder
	e.Str(name)
	r.Frame(wire.Header{Kind: wire.KindSignal}, e.B)
}

func (r *reader) resize(rows, cols uint16) {
	p := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, rows), cols)
	r.Frame(wire.Header{Kind: wire.KindResize}, p)
}

// await waits until a condition holds that an execution's goroutines bring about, each of which broadcasts.
func (x *command) await(t *testing.T, holds func() bool) {
	t.Helper()
	late := time.AfterFunc(guesttest.Patience, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.cond.Broadcast()
	})
	defer late.Stop()
	deadline := time.Now().Add(guesttest.Patience)
	x.mu.Lock()
	defer x.mu.Unlock()
	for !holds() {
		require.True(t, time.Now().Before(deadline), "it does not come to that")
		x.cond.Wait()
	}
}
