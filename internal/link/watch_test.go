package link

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// All that a node has to do with a server goes over one connection: thousands of nodes are connections, buffers and pings.
func TestANodeHasOneConnectionWithAServer(t *testing.T) {
	list := stations(t)
	d := keeps(t, "", list[0].addr)
	for range 3 {
		_, err := d.Register(t.Context(), &drover.Node{ID: "n1"})
		require.NoError(t, err)
	}
	for _, s := range list {
		reached(t, s)
	}
	require.NoError(t, d.Push(t.Context(), "n1", []exchange.AllocUpdate{{ID: "a"}}))
	for _, s := range list {
		require.EqualValues(t, 1, s.proxy.accepted.Load(), "connections at %s", s.id)
	}
}

func TestThePaceOfPings(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]time.Duration{
		0: leastPace, 10 * time.Second: leastPace, 40 * time.Second: time.Second, 200 * time.Second: mostPace, time.Hour: mostPace,
	} {
		require.Equal(t, want, pace(ttl), "nodes that send a heartbeat within %s", ttl)
	}
	require.LessOrEqual(t, leastPace+pingWithin, 2*time.Second, "a server that stands still is left within that")
}

// Servers that are too busy are given more time, so that nodes do not keep them busy by going from one to the other.
func TestPatienceGrows(t *testing.T) {
	t.Parallel()
	for failed, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		require.Equal(t, want*time.Second, longer(time.Second, failed))
	}
	require.Equal(t, mostPatience, longer(brisk.dial, 1000))
	require.Equal(t, time.Minute, longer(time.Minute, 3))
	l := newLine("127.0.0.1:1", nil, nil, func() time.Duration { return time.Minute })
	_, err := l.dial(t.Context())
	require.Error(t, err)
	require.EqualValues(t, 1, l.tries.Load())
}

// Only who says nothing at all does not answer.
func TestPing(t *testing.T) {
	s := newStation(t, "s0")
	d := keeps(t, "", s.addr)
	reached(t, s)
	line := d.list[0].line
	require.NoError(t, line.ping(t.Context(), time.Minute))
	heard := line.heard.Load()
	require.Positive(t, heard)
	close(s.proxy.paused)
	require.Equal(t, drover.Unavailable, drover.CodeOf(line.ping(t.Context(), time.Millisecond)))
	s.stop()
	s.proxy.conns.Wait()
	require.Eventually(t, func() bool { return line.ping(t.Context(), time.Millisecond) == nil }, time.Minute, time.Millisecond,
		"who asks something finds out that there is no connection")
}
