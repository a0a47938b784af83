package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
)

// receiver is where webhooks go. It is down until it is up.
type receiver struct {
	*httptest.Server
	up atomic.Bool

	mu   sync.Mutex
	told []execution.Execution // guarded by mu
	ids  map[string]bool       // of deliveries, also those that were refused; guarded by mu
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{ids: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ids[in.Header.Get("Drover-Delivery")] = true
		var x execution.Execution
		if !r.up.Load() || json.NewDecoder(in.Body).Decode(&x) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.told = append(r.told, x)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) heard() (told []execution.Execution, ids int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told, len(r.ids)
}

// awaitEnds reads events until so many executions ended: then the log has how.
func awaitEnds(t *testing.T, events *client.Events, n int) {
	t.Helper()
	for n > 0 {
		batch, err := events.Next()
		require.NoError(t, err)
		for _, e := range batch.Events {
			if e.Type == "ExecutionEnded" {
				n--
			}
		}
	}
}

// TestTheNextLeaderKnowsWhatHappened: the leader is killed. The one after it answers with receipts, tells the webhook that
// was down, and takes no repeated request for a new one.
func TestTheNextLeaderKnowsWhatHappened(t *testing.T) {
	t.Parallel()
	hook := startReceiver(t)
	r := startServers(t, 3, "exec {\n  webhook_allow = [\"127.0.0.0/8\"]\n}\naudit {\n  enabled = true\n}\n")
	leads := r.agreed(3, r.list...)
	m := rpcOn.FindStringSubmatch(r.list[leads].Output())
	require.NotNil(t, m)
	start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	follower, other := r.list[(leads+1)%3], r.list[(leads+2)%3]
	c := follower.native()
	_, _, err := c.PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 2}, time.Minute)
	require.NoError(t, err)
	claim := func(c *client.Client) (execution.Runner, error) {
		return c.Claim(client.WithIdempotencyKey(t.Context(), "claim"), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	}
	runner, err := claim(c)
	require.NoError(t, err)
	events, err := c.Events(t.Context(), 0, "Execution")
	require.NoError(t, err)
	defer events.Close()
	plain := execution.Request{Command: "exit 3"}
	key := client.WithIdempotencyKey(t.Context(), "execution")
	quiet, err := c.StartExecution(key, runner.ID, plain)
	require.NoError(t, err)
	hooked, err := c.StartExecution(t.Context(), runner.ID, execution.Request{Command: "exit 4", Webhook: hook.URL})
	require.NoError(t, err)
	awaitEnds(t, events, 2)
	parent := rawJob("p", "batch", "/bin/true")
	parent.ParameterizedJob = &api.ParameterizedJobConfig{}
	_, _, err = follower.nomad().Jobs().Register(parent, nil)
	require.NoError(t, err)
	dispatch := func(a *agent) (*api.JobDispatchResponse, error) {
		o, _, err := a.nomad().Jobs().DispatchOpts(&api.DispatchOptions{JobID: "p"}, &api.WriteOptions{IdempotencyToken: "token"})
		return o, err
	}
	child, err := dispatch(follower)
	require.NoError(t, err)

	last, err := c.StartExecution(t.Context(), runner.ID, execution.Request{Command: "exit 5"})
	require.NoError(t, err)
	last, err = c.WaitExecution(t.Context(), last.ID)
	require.NoError(t, err)
	require.Equal(t, 5, last.Receipt.ExitCode)

	r.list[leads].PullThePlug() // before the log has that: its runner keeps it
	eventually(t, "the receipts", func() (bool, string) {
		for id, code := range map[string]int{quiet.ID: 3, hooked.ID: 4, last.ID: 5} {
			x, err := other.native().Execution(t.Context(), id)
			if err != nil || x.Running || x.Receipt.ExitCode != code {
				return false, fmt.Sprint(id, x, err)
			}
		}
		return true, ""
	})
	again, err := dispatch(other)
	require.NoError(t, err)
	require.Equal(t, child.DispatchedJobID, again.DispatchedJobID)
	require.Equal(t, child.EvalID, again.EvalID)
	same, err := claim(other.native())
	require.NoError(t, err)
	require.Equal(t, runner.ID, same.ID)
	repeated, err := other.native().StartExecution(key, runner.ID, plain)
	require.NoError(t, err)
	require.Equal(t, quiet.ID, repeated.ID)
	hook.up.Store(true)
	eventually(t, "the webhook", func() (bool, string) {
		told, ids := hook.heard()
		return len(told) > 0, fmt.Sprint(told, ids)
	})
	told, ids := hook.heard()
	require.Equal(t, hooked.ID, told[0].ID)
	require.Equal(t, 4, told[0].Receipt.ExitCode)
	require.Equal(t, 1, ids, "one delivery, by two servers")
	recordedBySeveral(t, other, follower)

	endAll(t, other)
}

// recordedBySeveral asks for what three servers recorded, of which one is dead: it is named, and what the others have comes in one order,
// in pages.
func recordedBySeveral(t *testing.T, a, asks *agent) {
	t.Helper()
	page, err := asks.native().Audit(t.Context(), cluster.AuditQuery{PerPage: 2}) // which is recorded, too
	require.NoError(t, err)
	require.Len(t, page.Servers, 3)
	silent := 0
	for _, s := range page.Servers {
		if s.Problem != "" {
			silent++
		}
	}
	require.Equal(t, 1, silent, page.Servers)
	eventually(t, "records of both", func() (bool, string) { // the end of a request is written after it is answered
		by, last, q := map[string]bool{}, time.Now(), cluster.AuditQuery{PerPage: 2}
		for {
			page, err := a.native().Audit(t.Context(), q)
			require.NoError(t, err)
			for _, r := range page.Records {
				require.False(t, r.Time.After(last))
				last = r.Time
				by[r.Server] = true
			}
			if q.NextToken = page.NextToken; q.NextToken == "" {
				return len(by) == 2, fmt.Sprint(by)
			}
		}
	})
}

// endAll ends all jobs, and waits until nothing of them runs.
func endAll(t *testing.T, a *agent) {
	t.Helper()
	jobs, _, err := a.nomad().Jobs().List(&api.QueryOptions{Namespace: api.AllNamespacesNamespace})
	require.NoError(t, err)
	for _, j := range jobs {
		_, _, err = a.nomad().Jobs().Deregister(j.ID, true, &api.WriteOptions{Namespace: j.Namespace})
		require.NoError(t, err)
	}
	nothingRuns(t, a.nomad())
}
