package e2e

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/tenancy"
)

// atOnce counts how many of the calls succeed that are made at once at all of the servers, a few at each. The others must be refused as
// exhausted.
func atOnce(t *testing.T, servers []*agent, each int, call func(s *agent, i int) error) (done int) {
	t.Helper()
	var mu sync.Mutex // guards done
	var all sync.WaitGroup
	for at, s := range servers {
		for i := range each {
			all.Go(func() { // ends with the answer
				err := call(s, at*each+i)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done++
				case drover.CodeOf(err) != drover.Exhausted:
					t.Errorf("at %s: %v", s.addr, err)
				}
			})
		}
	}
	all.Wait()
	return done
}

// Three servers hand out runners and start executions at once: a quota bounds what they do together, to the last one.
func TestAQuotaBoundsServersTogether(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(1)
	leader := r.list[leads]
	_, _, err := leader.native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 9}, time.Minute)
	require.NoError(t, err)
	put := func(path string, body any) {
		t.Helper()
		text, err := json.Marshal(body)
		require.NoError(t, err)
		status, answer := leader.request("PUT", path, string(text))
		require.Equal(t, 200, status, answer)
	}
	quota := func(runners, executions int) {
		t.Helper()
		put("/v1/quota", &tenancy.QuotaSpec{Name: "q", Limits: []*tenancy.QuotaLimit{{
			Region: "global", RegionLimit: &tenancy.QuotaResources{Runners: &runners, Executions: &executions},
		}}})
	}
	known := func(what string, is func(q *api.QuotaSpec, n *api.Namespace) bool) { // a limit holds at each server once that knows of it
		t.Helper()
		for _, s := range r.list {
			eventually(t, what, func() (bool, string) {
				q, _, err := s.nomad().Quotas().Info("q", &api.QueryOptions{AllowStale: true})
				if err != nil {
					return false, err.Error()
				}
				n, _, err := s.nomad().Namespaces().Info("default", &api.QueryOptions{AllowStale: true})
				return err == nil && is(q, n), fmt.Sprint(q, n, err)
			})
		}
	}
	quota(5, 0)
	put("/v1/namespace", &tenancy.Namespace{Name: "default", Quota: "q"})
	known("the quota", func(_ *api.QuotaSpec, n *api.Namespace) bool { return n.Quota == "q" })
	used := func() *tenancy.QuotaResources {
		t.Helper()
		status, text := leader.request("GET", "/v1/quota-usage/q", "")
		require.Equal(t, 200, status, text)
		var u tenancy.QuotaUsage
		require.NoError(t, json.Unmarshal([]byte(text), &u))
		require.Len(t, u.Used, 1)
		for _, l := range u.Used {
			return l.RegionLimit
		}
		return nil
	}
	var mu sync.Mutex // guards got
	var got []string
	claim := func(s *agent, _ int) error {
		x, err := s.native().Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute, IdleTimeout: -1})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, x.ID)
		}
		return err
	}
	require.Equal(t, 5, atOnce(t, r.list, 4, claim))
	require.Equal(t, 5, *used().Runners)

	quota(5, 2)
	known("the limit", func(q *api.QuotaSpec, _ *api.Namespace) bool { return q.ModifyIndex > q.CreateIndex })
	start := func(s *agent, i int) error {
		_, err := s.native().StartExecution(t.Context(), got[i%len(got)], execution.Request{Spec: execution.Spec{
			Argv: []string{"/bin/sh", "-c", "sleep 3"}, Detach: -1,
		}})
		return err
	}
	require.Equal(t, 2, atOnce(t, r.list, 4, start))
	eventually(t, "the executions end", func() (bool, string) { return *used().Executions == 0, "they count still" })
	require.NoError(t, start(r.list[0], 0))
	for _, id := range got {
		require.NoError(t, leader.native().Release(t.Context(), id))
	}
	eventually(t, "the runners end", func() (bool, string) {
		u := used()
		return *u.Runners == 0 && *u.Executions == 0, "they count still"
	})
	endAll(t, leader)
}
