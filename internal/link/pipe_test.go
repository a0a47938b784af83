package link

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
)

// piped returns a node's workloads through a server that has local ones or those of nodes.
func piped(t *testing.T, nodes *Nodes, local exchange.Workloads) *Piped {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: nodes.Pipes(func(string) exchange.Workloads { return local })}
	go func() { _ = srv.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	p := Through("n1", func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	})
	t.Cleanup(p.Close)
	return p
}

// Through another server a node is what it is through a tunnel. No byte is lost, input waits for who reads it, and a session
// whose server is lost is told from one that was closed.
func TestANodeThroughAnotherServer(t *testing.T) {
	for name, here := range map[string]bool{"its tunnel": false, "its process": true} {
		t.Run(name, func(t *testing.T) {
			reach := func(w *world) *Piped {
				if here {
					return piped(t, NewNodes(), w)
				}
				_, nodes, cut := dialled(t, w)
				t.Cleanup(cut)
				return piped(t, nodes, nil)
			}
			p := reach(&world{})
			trySession(t, p)
			tryFiles(t, p)
			tryLogs(t, p)
			r, err := p.ReadFolder(t.Context(), "a", "x", 0, 0)
			require.NoError(t, err)
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			require.Len(t, data, 200_000)

			w := &world{left: make(chan string)}
			p = reach(w)
			start := func() execution.Session {
				s, err := p.StartExecution(t.Context(), "a", "", execution.Spec{Argv: []string{"cat"}})
				require.NoError(t, err)
				return s
			}
			s := start()
			require.NoError(t, s.Close())
			require.Equal(t, "closed", <-w.left)
			s = start()
			go p.Close() // ends at once
			require.Equal(t, "lost", <-w.left)
			require.NoError(t, s.Close())
			s = start()
			go execution.LetGo(s) // ends when the node has heard it
			require.Equal(t, "untaken", <-w.left)
			require.NoError(t, s.Close())
			s = start() // through a new pipe
			require.NoError(t, s.Close())
			require.Equal(t, "closed", <-w.left)
		})
	}
}

func TestANodeThatNobodyReaches(t *testing.T) {
	t.Parallel()
	p := piped(t, NewNodes(), nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(p.CollectGarbage(t.Context(), "a")))
}

// A server that was about to end took the connection and answered nothing. The one call that asked it for a pipe held up all others of
// that node, whatever time these had, so that nobody took an execution over.
func TestAServerThatOpensNoPipe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan net.Conn, 2)
		p := Through("n1", func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			asked <- theirs
			return ours, nil
		})
		defer p.Close()
		began := time.Now()
		first := make(chan error, 1)
		go func() { first <- p.CollectGarbage(t.Context(), "a") }()
		stands := <-asked
		go func() { _, _ = io.Copy(io.Discard, stands) }() // ends with the connection

		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.CollectGarbage(hasty, "a"), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, drover.Unavailable, drover.CodeOf(<-first))
		require.Equal(t, pipeWithin, time.Since(began))

		next := make(chan error, 1)
		go func() { next <- p.CollectGarbage(t.Context(), "a") }()
		_ = (<-asked).Close() // another server is asked
		require.Equal(t, drover.Unavailable, drover.CodeOf(<-next))
		require.Equal(t, pipeWithin, time.Since(began))
	})
}
