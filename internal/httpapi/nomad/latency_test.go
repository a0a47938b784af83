package nomad_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// firstByte notes when the first byte comes.
type firstByte struct{ at time.Time }

func (f *firstByte) Write(p []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return len(p), nil
}

// The figures of the face over the real pieces; they are logged, not asserted: `go test -v -run Latency`.
func TestLatency(t *testing.T) {
	c := newCluster(t)
	_, _, err := c.client.Jobs().Register(sleeper("svc", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	alloc := c.await(t, "svc", "running")
	alloc.NodeID = "" // the client would ask for the node's address first
	var first, whole []time.Duration
	for range 50 {
		var out firstByte
		start := time.Now()
		_, err := c.client.Allocations().Exec(t.Context(), alloc, "t", false, []string{"/bin/echo", "x"}, strings.NewReader(""),
			&out, io.Discard, nil, nil)
		require.NoError(t, err)
		first, whole = append(first, out.at.Sub(start)), append(whole, time.Since(start))
	}
	var running []time.Duration
	for i := range 20 {
		id := "job" + string(rune('a'+i))
		events, err := c.client.EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicAllocation: {id}}, 0, nil)
		require.NoError(t, err)
		start := time.Now()
		_, _, err = c.client.Jobs().Register(sleeper(id, "/bin/sleep", "1000"), nil)
		require.NoError(t, err)
		for line := range events {
			require.NoError(t, line.Err)
			a, err := line.Events[0].Allocation()
			require.NoError(t, err)
			if a.ClientStatus == "running" {
				break
			}
		}
		running = append(running, time.Since(start))
	}
	for name, list := range map[string][]time.Duration{
		"exec to first byte": first, "exec to exit": whole,
		"register to running event": running,
	} {
		slices.Sort(list)
		t.Logf("%s: p50 %v, p95 %v", name, list[len(list)/2], list[len(list)*95/100])
	}
}
