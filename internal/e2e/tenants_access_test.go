package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// tenant is a team with a namespace of its own, and a token that is good for it alone.
type tenant struct{ name, token string }

// tenants makes a namespace, a policy and a token for each name.
func tenants(t *testing.T, a *agent, names ...string) (all []tenant) {
	t.Helper()
	c := a.nomad()
	for _, name := range names {
		_, err := c.Namespaces().Register(&api.Namespace{Name: name}, nil)
		require.NoError(t, err)
		rules := fmt.Sprintf("namespace %q { policy = \"write\" }", name)
		_, err = c.ACLPolicies().Upsert(&api.ACLPolicy{Name: name, Rules: rules}, nil)
		require.NoError(t, err)
		token, _, err := c.ACLTokens().Create(&api.ACLToken{Name: name, Type: "client", Policies: []string{name}}, nil)
		require.NoError(t, err)
		all = append(all, tenant{name, token.SecretID})
	}
	return all
}

// at is the tenant's client of an agent.
func (x tenant) at(a *agent) *client.Client {
	a.t.Helper()
	c, err := client.New("http://"+a.addr, client.WithToken(x.token), client.WithNamespace(x.name))
	require.NoError(a.t, err)
	return c
}

// heard collects the namespaces of the events of our topics that a tenant is told of all namespaces, until the test ends.
func (x tenant) heard(a *agent) func() map[string]int {
	a.t.Helper()
	url := "http://" + a.addr + "/v1/event/stream?namespace=*&topic=Environment&topic=Runner&topic=Execution"
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(a.t, err)
	r.Header.Set("X-Nomad-Token", x.token)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(a.t, err)
	require.Equal(a.t, http.StatusOK, answer.StatusCode)
	var mu sync.Mutex // guards counts
	counts := map[string]int{}
	go func() { // ends with the test's context
		defer answer.Body.Close()
		for lines := bufio.NewReader(answer.Body); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var batch struct {
				Events []struct{ Topic, Namespace string }
			}
			_ = json.Unmarshal(line, &batch) // a heartbeat is an empty object
			mu.Lock()
			for _, e := range batch.Events {
				counts[e.Namespace+" "+e.Topic]++
			}
			mu.Unlock()
		}
	}()
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(counts)
	}
}

// Two teams have environments of one id, and tokens that are good for their own namespace. At each of three servers each gets runners and
// results of its own, hears of its own alone, and cannot reach the other's. A namespace with an environment cannot be deleted.
func TestTenantsReachTheirOwn(t *testing.T) {
	t.Parallel()
	r, _ := startServersAndNode(t, "acl {\n  enabled = true\n}\n")
	var root *api.ACLToken
	eventually(t, "a bootstrap", func() (bool, string) { // once all know version 3
		var err error
		root, _, err = r.list[0].nomad().ACLTokens().Bootstrap(nil)
		return err == nil, fmt.Sprint(err)
	})
	for _, a := range r.list {
		a.token = root.SecretID
	}
	r.ready(1)
	leader := r.list[r.agreed(3, r.list...)]
	teams := tenants(t, leader, "red", "blue")
	heard := teams[0].heard(leader)
	for _, x := range teams {
		put, full, err := x.at(leader).PutEnvironmentAndWait(t.Context(), execution.Environment{
			ID: "e", Image: "host", PoolSize: 3, Env: map[string]string{"TEAM": x.name},
		}, time.Minute)
		require.NoError(t, err)
		require.True(t, full)
		require.Equal(t, x.name+"~e", put.Key())
	}
	_, err := leader.nomad().Namespaces().Delete("red", nil)
	require.ErrorContains(t, err, `environment-e`, "what is left is named")

	claimed := claimedByTeams(t, r.list, teams)
	foreign(t, r.list, teams, claimed)
	for key := range heard() {
		require.Contains(t, []string{"red Environment", "red Runner", "red Execution"}, key)
	}
	eventually(t, "events of all kinds", func() (bool, string) { return len(heard()) == 3, fmt.Sprint(heard()) })
	for _, x := range teams {
		require.NoError(t, x.at(leader).DeleteEnvironment(t.Context(), "e"))
	}
	endAll(t, leader)
}

// claimedByTeams claims a runner for each team at each server, all at once, and runs a program in each, which tells whose it is.
func claimedByTeams(t *testing.T, servers []*agent, teams []tenant) (claimed map[string][]execution.Runner) {
	t.Helper()
	var mu sync.Mutex // guards claimed
	var all sync.WaitGroup
	claimed = map[string][]execution.Runner{}
	for _, x := range teams {
		for i, s := range servers {
			c, other := x.at(s), x.at(servers[(i+1)%len(servers)])
			all.Go(func() { // ends with the answers
				got, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute, IdleTimeout: -1})
				if err != nil {
					t.Errorf("%s at %s: %v", x.name, s.addr, err)
					return
				}
				out, err := ranIn(t, other, got.ID)
				if err != nil || out != x.name || got.Namespace != x.name {
					t.Errorf("%s got %s, which says %q: %v", x.name, got.ID, out, err)
				}
				mu.Lock()
				defer mu.Unlock()
				claimed[x.name] = append(claimed[x.name], got)
			})
		}
	}
	all.Wait()
	return claimed
}

// ranIn asks a runner whose it is.
func ranIn(t *testing.T, c *client.Client, runner string) (string, error) {
	x, err := c.StartExecution(t.Context(), runner, execution.Request{Command: "printf %s $TEAM", Spec: execution.Spec{Detach: -1}})
	if err != nil {
		return "", err
	}
	out, err := c.Output(t.Context(), x.ID, "stdout", 0)
	if err != nil {
		return "", err
	}
	defer out.Close()
	text, err := io.ReadAll(out)
	return string(text), err
}

// foreign has each team try what is the other's, at each server.
func foreign(t *testing.T, servers []*agent, teams []tenant, claimed map[string][]execution.Runner) {
	t.Helper()
	for i, x := range teams {
		other := claimed[teams[1-i].name][0]
		running, err := teams[1-i].at(servers[0]).StartExecution(t.Context(), other.ID, execution.Request{
			Command: "sleep 60", Spec: execution.Spec{Detach: -1},
		})
		require.NoError(t, err)
		for _, s := range servers {
			c := x.at(s)
			_, err := c.Runner(t.Context(), other.ID)
			require.Equal(t, drover.Forbidden, drover.CodeOf(err))
			_, err = c.Runner(t.Context(), x.name+"~e-"+other.AllocID)
			require.Equal(t, drover.NotFound, drover.CodeOf(err), "under a name of one's own")
			_, err = c.Execution(t.Context(), running.ID)
			require.Equal(t, drover.NotFound, drover.CodeOf(err))
			require.Equal(t, drover.NotFound, drover.CodeOf(c.Kill(t.Context(), running.ID)))
			_, err = c.Claim(t.Context(), execution.ClaimRequest{Environment: teams[1-i].name + "~e"})
			require.Equal(t, drover.Forbidden, drover.CodeOf(err))
			_, err = c.In("default").Environments(t.Context())
			require.Equal(t, drover.Forbidden, drover.CodeOf(err))
			all, err := c.In("*").Runners(t.Context(), "")
			require.NoError(t, err)
			require.NotEmpty(t, all)
			for _, one := range all {
				require.Equal(t, x.name, one.Namespace)
			}
		}
		require.NoError(t, teams[1-i].at(servers[0]).Kill(t.Context(), running.ID))
	}
}
