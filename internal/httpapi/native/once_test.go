package native_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/facetest"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
)

// onceWorld is the face twice over one execution service: the second has nothing of the first one's memory, as that of
// another process or server. Both have environment "e" with warm runners.
func onceWorld(t *testing.T) (first, second *client.Client, node *exectest.Node) {
	t.Helper()
	cfg := httpapi.Config{Clock: clock.Wall{}}
	var other *httptest.Server
	served := facetest.Serve(t, cfg, func(s *facetest.World) httpapi.Face {
		face := func() *native.Face {
			return native.New(native.Config{}, native.Deps{
				Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Clock: clock.Wall{}, Log: s.Log,
			})
		}
		cfg.Logger = s.Log
		other = httptest.NewServer(described(t, httpapi.Handler(cfg, face())))
		return face()
	}, func(h http.Handler) http.Handler { return described(t, h) })
	t.Cleanup(other.Close)
	first, err := client.New(served.Server.URL)
	require.NoError(t, err)
	second, err = client.New(other.URL)
	require.NoError(t, err)
	_, _, err = first.PutEnvironment(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 3})
	require.NoError(t, err)
	exectest.AwaitWarm(t, served.Runners, 3)
	return first, second, served.Control.Node
}

func claimE(labels map[string]string) execution.ClaimRequest {
	return execution.ClaimRequest{Environment: "e", Wait: time.Minute, Labels: labels}
}

func TestAKeyClaimsOnce(t *testing.T) {
	t.Parallel()
	first, second, _ := onceWorld(t)
	ctx := client.WithIdempotencyKey(t.Context(), "one")
	file := execution.FileChange{Path: "a", Data: []byte("x")}
	r, err := first.Claim(ctx, claimE(map[string]string{"user": "7"}), file)
	require.NoError(t, err)
	require.Equal(t, "7", r.Labels["user"])
	again, err := first.Claim(ctx, claimE(map[string]string{"user": "7"}), file)
	require.NoError(t, err)
	require.Equal(t, r, again)
	_, err = first.Claim(ctx, claimE(nil))
	require.Equal(t, drover.Conflict, code(err))
	require.ErrorContains(t, err, "another request")
	other, err := first.Claim(client.WithIdempotencyKey(t.Context(), "two"), claimE(map[string]string{"user": "7"}), file)
	require.NoError(t, err)
	require.NotEqual(t, r.ID, other.ID)
	none, err := first.Claim(t.Context(), claimE(nil))
	require.NoError(t, err)
	require.NotContains(t, []string{r.ID, other.ID}, none.ID)
	_, err = first.Claim(t.Context(), claimE(map[string]string{"drover.idempotency-key": "x"}))
	require.Equal(t, drover.Invalid, code(err))

	after, err := second.Claim(ctx, claimE(map[string]string{"user": "7"}), file)
	require.NoError(t, err)
	require.Equal(t, r.ID, after.ID, "after a restart the runner's label tells")
	_, err = second.Claim(client.WithIdempotencyKey(t.Context(), "two"), claimE(nil))
	require.Equal(t, drover.Conflict, code(err))
	_, err = second.Claim(client.WithIdempotencyKey(t.Context(), string(make([]byte, 300))), claimE(nil))
	require.Error(t, err)
}

// The server led, another did meanwhile and answered the key otherwise, and it leads again.
func TestAKeysAnswerEndsWithTheIncarnation(t *testing.T) {
	t.Parallel()
	var incarnation atomic.Uint64
	served := facetest.Serve(t, httpapi.Config{}, func(s *facetest.World) httpapi.Face {
		return native.New(native.Config{}, native.Deps{
			Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Incarnation: incarnation.Load, Clock: clock.Wall{}, Log: s.Log,
		})
	}, nil)
	c, err := client.New(served.Server.URL)
	require.NoError(t, err)
	_, _, err = c.PutEnvironment(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 2})
	require.NoError(t, err)
	ctx := client.WithIdempotencyKey(t.Context(), "one")
	first, err := c.Claim(ctx, claimE(nil))
	require.NoError(t, err)
	require.NoError(t, c.Release(t.Context(), first.ID))
	again, err := c.Claim(ctx, claimE(nil))
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	incarnation.Add(1)
	later, err := c.Claim(ctx, claimE(nil))
	require.NoError(t, err)
	require.NotEqual(t, first.ID, later.ID)
}

func TestAKeyExecutesOnce(t *testing.T) {
	t.Parallel()
	first, second, _ := onceWorld(t)
	r, err := first.Claim(t.Context(), claimE(nil))
	require.NoError(t, err)
	ctx := client.WithIdempotencyKey(t.Context(), "one")
	request := execution.Request{Command: "exit 3", Spec: execution.Spec{Detach: time.Minute}}
	x, err := first.StartExecution(ctx, r.ID, request)
	require.NoError(t, err)
	again, err := first.StartExecution(ctx, r.ID, request)
	require.NoError(t, err)
	require.Equal(t, x, again)
	after, err := second.StartExecution(ctx, r.ID, request)
	require.NoError(t, err)
	require.Equal(t, x.ID, after.ID, "after a restart the id tells, which the key gives")
	request.Command = "exit 4"
	for _, c := range []*client.Client{first, second} {
		_, err = c.StartExecution(ctx, r.ID, request)
		require.Equal(t, drover.Conflict, code(err))
	}
	list, err := first.Executions(t.Context(), r.ID)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestAKeyRunsOnce(t *testing.T) {
	t.Parallel()
	first, second, _ := onceWorld(t)
	ctx := client.WithIdempotencyKey(t.Context(), "one")
	request := execution.RunRequest{Environment: "e", Request: execution.Request{Command: "echo hello; sleep 10ms; exit 3"}}
	results := make([]execution.RunResult, 8)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { // ends with its answer
			var err error
			results[i], err = first.Run(ctx, request)
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.Equal(t, "hello\n", results[0].Stdout)
	for _, r := range results {
		require.Equal(t, results[0], r)
	}
	_, err := second.Run(ctx, request)
	require.Equal(t, drover.Conflict, code(err), "its output is not kept")
	require.ErrorContains(t, err, results[0].Receipt.ExecutionID)
	// What failed may be tried again, as long as nothing ran.
	_, err = first.Run(client.WithIdempotencyKey(t.Context(), "two"), execution.RunRequest{Environment: "f", Request: request.Request})
	require.Equal(t, drover.NotFound, code(err))
	_, _, err = first.PutEnvironment(t.Context(), execution.Environment{ID: "f", Image: "host", PoolSize: 1})
	require.NoError(t, err)
	_, err = first.Run(client.WithIdempotencyKey(t.Context(), "two"), execution.RunRequest{Environment: "f", Request: request.Request})
	require.NoError(t, err)
}

func TestAKeyOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	first, _, node := onceWorld(t)
	ctx, leave := context.WithCancel(client.WithIdempotencyKey(t.Context(), "one"))
	request := execution.RunRequest{Environment: "e", Request: execution.Request{Command: "sleep 100ms; echo done"}}
	var gone sync.WaitGroup
	gone.Go(func() { _, _ = first.Run(ctx, request) }) // ends when the test leaves
	// Its runner is claimed only while the execution runs; that one was started stays true.
	started := func() bool { return node.Started() > 0 }
	require.Eventually(t, started, time.Minute, time.Millisecond)
	leave()
	gone.Wait()
	result, err := first.Run(client.WithIdempotencyKey(t.Context(), "one"), request)
	require.NoError(t, err)
	require.Equal(t, "done\n", result.Stdout, "the first goes on, and answers the second")
}
