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
	require.Eventually(t, func() bool { return line.ping(t.Context(), time.Second) == nil }, time.Minute, time.Millisecond,
		"who asks something finds out that there is no connection")
}

// Thousands of nodes ask their server rarely whether it lives. One that stands still they leave as soon as another one, which it does
// not answer either, says so; one that answers they stay with, whatever is said of it.
func TestASuspectedServerIsLookedAt(t *testing.T) {
	list := stations(t)
	d := keeps(t, "", list[0].addr)
	_, err := d.Register(t.Context(), &drover.Node{ID: "n1"})
	require.NoError(t, err)
	for _, s := range list {
		reached(t, s)
	}
	d.mu.Lock()
	d.pace = time.Hour // from the next look on
	d.mu.Unlock()
	d.doubt.Send()
	main := func() (at *station, line *line) {
		s, _, _ := d.mainServer()
		for _, x := range list {
			if x.addr == s.address {
				at = x
			}
		}
		return at, s.line
	}
	at, line := main()
	heard := line.heard.Load()
	for _, s := range list {
		s.nodes.Suspect(at.id)
	}
	require.Eventually(t, func() bool { return line.heard.Load() > heard+1 }, time.Minute, time.Millisecond, "it is asked, and answers")
	now, _ := main()
	require.Equal(t, at.id, now.id)

	close(at.proxy.paused)
	for _, s := range list {
		if s != at {
			s.nodes.Suspect("another")
			s.nodes.Suspect(at.id)
		}
	}
	require.Eventually(t, func() bool { now, _ := main(); return now != at }, time.Minute, time.Millisecond)
}
