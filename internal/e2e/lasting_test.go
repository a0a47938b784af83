package e2e

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// echo numbers what it writes on both streams, without a pause, and tells on stdout what it read.
const echo = `n=0
while IFS= read -r line; do
  printf 'out %d %s\n' $n "$line"
  printf 'err %d %s\n' $n "$line" >&2
  n=$((n+1))
done
echo "end $n"`

// conversation is what came of an execution that was written to.
type conversation struct {
	out, err bytes.Buffer
	receipt  *execution.Receipt
	failed   error
}

// write writes lines. At those that are named it tells so, and goes on when it is told to.
func write(ctx context.Context, s *client.Lasting, lines int, stops map[int]chan struct{}) {
	for i := range lines {
		if stop := stops[i]; stop != nil {
			stop <- struct{}{}
		}
		if s.Write(ctx, fmt.Appendf(nil, "line %d\n", i)) != nil {
			return // Next tells
		}
	}
	_ = s.CloseStdin(ctx)
}

// read takes what comes until the receipt. It closes started at the first frame: from there on the attachment outlives servers.
func read(ctx context.Context, s *client.Lasting, started chan<- struct{}) *conversation {
	c := &conversation{}
	begin := sync.OnceFunc(func() { close(started) })
	for {
		f, err := s.Next(ctx)
		if err == nil {
			begin()
		}
		to := &c.out
		if f.Stream == execution.Stderr {
			to = &c.err
		}
		switch {
		case err != nil:
			c.failed = fmt.Errorf("after %d bytes: %w", c.out.Len(), err)
			return c
		case f.Receipt != nil:
			c.receipt = f.Receipt
			return c
		case len(f.Data) > 0 && f.Offset != int64(to.Len()), f.Skipped:
			c.failed = fmt.Errorf("bytes at %d came where those at %d were due", f.Offset, to.Len())
			return c
		}
		to.Write(f.Data)
	}
}

// TestAnExecutionOutlivesItsServers: a client writes and reads without a pause. The server that keeps the execution is killed in
// the middle, then the one that took over stops in order. No byte of stdin, stdout and stderr is lost or doubled.
func TestAnExecutionOutlivesItsServers(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(1)
	follower, other := (leads+1)%3, (leads+2)%3
	_, _, err := r.list[leads].native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 3},
		time.Minute)
	require.NoError(t, err)
	var one execution.Runner
	eventually(t, "a runner of the follower", func() (bool, string) {
		one, err = r.list[follower].native().Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute, IdleTimeout: -1})
		return err == nil, fmt.Sprint(err)
	})
	clients := []*client.Client{r.list[follower].native(), r.list[other].native(), r.list[leads].native()}
	s, err := client.ExecuteLasting(t.Context(), clients, one.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/bin/sh", "-c", echo}, Stdin: true, Detach: time.Minute,
	}})
	require.NoError(t, err)
	const lines = 3000
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stops := map[int]chan struct{}{1000: make(chan struct{}), 2000: make(chan struct{})}
	done := make(chan *conversation, 1)
	started := make(chan struct{})
	go func() { done <- read(ctx, s, started) }() // ends with the receipt, or ctx
	go write(ctx, s, lines, stops)                // ends with the lines, or ctx
	meet := func(at int) {
		select {
		case <-stops[at]:
		case c := <-done:
			require.NoError(t, c.failed)
		}
	}
	select {
	case <-started:
	case c := <-done:
		require.NoError(t, c.failed)
	}
	meet(1000)
	r.list[follower].PullThePlug()
	r.list[follower] = r.start(follower, 3)
	r.agreed(3, r.list...)
	meet(2000)
	r.list[leads].Stop() // which has taken over
	c := <-done
	require.NoError(t, c.failed)
	require.NoError(t, s.Close())
	var wantOut, wantErr bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&wantOut, "out %d line %d\n", i, i)
		fmt.Fprintf(&wantErr, "err %d line %d\n", i, i)
	}
	fmt.Fprintf(&wantOut, "end %d\n", lines)
	require.Equal(t, wantOut.String(), c.out.String())
	require.Equal(t, wantErr.String(), c.err.String())
	require.Equal(t, execution.CauseExited, c.receipt.Cause, "%+v", c.receipt)
	require.False(t, c.receipt.Truncated)
	require.NoError(t, clients[1].Release(t.Context(), one.ID))
	endAll(t, r.list[other])
}
