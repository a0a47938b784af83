package link

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/link/wire"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// A node has one connection until it is registered; who does not answer is not waited for.
func TestServersAreDialledInTurn(t *testing.T) {
	t.Parallel()
	registers := func(d *Dialed) { _, _ = d.registered(exchange.Registration{TTL: time.Minute}, nil) }
	for name, c := range map[string]struct {
		known   bool
		happens func(t *testing.T, d *Dialed)
		want    []time.Duration // when each is dialled, at the earliest
		spread  time.Duration   // and so much later at the latest
	}{
		"all are silent": {happens: func(*testing.T, *Dialed) {}, want: []time.Duration{0, hush, 2 * hush}},
		"the first fails": {happens: func(t *testing.T, d *Dialed) {
			clock.Sleep(t.Context(), d.cfg.Clock, time.Second)
			d.fell(d.list[0])
		}, want: []time.Duration{0, time.Second, time.Second + hush}},
		"the first says something, and is silent then": {happens: func(t *testing.T, d *Dialed) {
			clock.Sleep(t.Context(), d.cfg.Clock, 2*time.Second)
			d.list[0].line.heard.Add(1)
		}, want: []time.Duration{0, 2 * hush, 3 * hush}},
		"a busy server registers the node after ten seconds": {happens: func(t *testing.T, d *Dialed) {
			for range 10 {
				clock.Sleep(t.Context(), d.cfg.Clock, time.Second)
				d.list[0].line.heard.Add(1)
			}
			registers(d)
		}, want: []time.Duration{0, 20 * time.Second, 20 * time.Second}, spread: 20 * time.Second},
		"an idle one at once":              {happens: func(_ *testing.T, d *Dialed) { registers(d) }, want: []time.Duration{0, 0, 0}},
		"the node is registered elsewhere": {known: true, happens: func(*testing.T, *Dialed) {}, want: []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := Dial(DialConfig{
					Servers: []string{"a:1", "b:1", "c:1"}, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Known: c.known,
				})
				d.starts()
				begun, took := time.Now(), make([]time.Duration, 3)
				for i, s := range slices.Clone(d.list) {
					go func() { // ends when it is its turn
						d.awaitTurn(t.Context(), s)
						took[i] = time.Since(begun)
					}()
				}
				synctest.Wait()
				c.happens(t, d)
				time.Sleep(time.Minute)
				synctest.Wait()
				for i, want := range c.want {
					require.GreaterOrEqual(t, took[i], want, i)
					require.LessOrEqual(t, took[i], want+c.spread, i)
				}
			})
		})
	}
}

// The wait for the other servers is bounded, and another one for each node.
func TestSpread(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for i := range 100 {
		got := spread(2*time.Second, string(rune('a'+i)))
		require.GreaterOrEqual(t, got, 2*time.Second)
		require.LessOrEqual(t, got, 6*time.Second)
		seen[got] = true
	}
	require.Greater(t, len(seen), 50)
	require.Equal(t, mostSpread, spread(time.Hour, "n"))
	require.Zero(t, spread(0, "n"))
}

// In a tunnel nothing is said until something is asked. A node of before waits ten seconds for the first word, and closes it then: it
// does not say that it can wait, and is spoken to at once.
func TestTunnelsAreSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ silent, asked bool }{
		"never asked": {true, false}, "asked": {true, true}, "of before": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control, nodes := serve(t, &world{})
			ctx, cancel := context.WithCancel(t.Context())
			s := control.tunnel.CallBidiStream(ctx)
			control.who().set(s.RequestHeader())
			if c.silent {
				s.RequestHeader().Set(silentHeader, "true")
			}
			require.NoError(t, s.Send(nil))
			_, err := s.Receive()
			require.NoError(t, err)
			spoken := make(chan bool, 1)
			go func() { spoken <- hears(s) }() // ends with the first word, or the tunnel
			var node *remoteNode
			require.Eventually(t, func() bool { node, err = nodes.node("n1"); return err == nil }, time.Minute, time.Millisecond)
			asked := make(chan error, 1)
			switch {
			case c.asked:
				require.Empty(t, spoken)
				go func() { asked <- node.CollectGarbage(ctx, "a") }() // ends with the tunnel
				require.True(t, <-spoken)
			case !c.silent:
				require.True(t, <-spoken, "without a question")
			}
			require.NoError(t, s.CloseRequest())
			cancel()
			require.Eventually(t, func() bool { _, err := nodes.node("n1"); return err != nil }, time.Minute, time.Millisecond)
			if c.asked {
				require.Error(t, <-asked)
			}
			if c.silent && !c.asked {
				require.False(t, <-spoken)
			}
		})
	}
}

func hears(s *connect.BidiStreamForClient[wire.Chunk, wire.Chunk]) bool {
	m, err := s.Receive()
	return err == nil && len(m.Data) > 0
}
