package e2e

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Three servers hand out runners of environments that have one id in three namespaces. Each claimer gets one of its own
// namespace, each runner is handed out once, and any server answers for it, also when its own is gone.
func TestTenantsOfSeveralServers(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(1)
	leader, killed, other := r.list[leads], r.list[(leads+1)%3], r.list[(leads+2)%3]
	tenants := []string{"", "red", "blue"}
	for _, ns := range tenants {
		if ns != "" {
			status, answer := leader.request("PUT", "/v1/namespace", fmt.Sprintf(`{"Name":%q}`, ns))
			require.Equal(t, 200, status, answer)
		}
		_, full, err := leader.native().PutEnvironmentAndWait(t.Context(), execution.Environment{
			ID: "e", Namespace: ns, Image: "host", PoolSize: 4, Env: map[string]string{"OF": "of " + ns},
		}, time.Minute)
		require.NoError(t, err)
		require.True(t, full)
	}
	var mu sync.Mutex // guards seen
	seen := map[string]execution.Runner{}
	claim := func(servers ...*agent) {
		t.Helper()
		var all sync.WaitGroup
		for _, s := range servers {
			for _, ns := range tenants {
				all.Go(func() { // ends with the answer
					c := s.native().In(ns)
					got, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute, IdleTimeout: -1})
					if err != nil {
						t.Errorf("claiming in %q at %s: %v", ns, s.addr, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if _, twice := seen[got.ID]; twice || got.Key() != execution.Key(ns, "e") {
						t.Errorf("a claim in %q got %+v, twice: %t", ns, got, twice)
					}
					seen[got.ID] = got
				})
			}
		}
		all.Wait()
	}
	claim(r.list...)
	// What a server's death finds in its journal alone is stopped until the server is back.
	eventually(t, "the claims in the log", func() (bool, string) {
		status, answer := leader.request("GET", "/v1/allocations?namespace=*", "")
		require.Equal(t, 200, status, answer)
		var list []drover.AllocationListStub
		require.NoError(t, json.Unmarshal([]byte(answer), &list))
		recorded := 0
		for _, one := range list {
			if one.Claim != nil {
				recorded++
			}
		}
		return recorded == len(seen), fmt.Sprintf("%d of %d", recorded, len(seen))
	})
	killed.PullThePlug()
	claim(leader, other)
	for id, got := range seen {
		x, err := other.native().StartExecution(t.Context(), id, execution.Request{Command: `test "$OF" = "of ` + got.Namespace + `"`})
		require.NoError(t, err)
		x, err = leader.native().WaitExecution(t.Context(), x.ID)
		require.NoError(t, err)
		require.Zero(t, x.Receipt.ExitCode, "%s: %+v", id, x.Receipt)
		_, err = other.native().Runner(t.Context(), execution.Key("nobody", "e")+"-"+got.AllocID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	}
	list, err := other.native().In("*").Runners(t.Context(), "")
	require.NoError(t, err)
	claimed := 0
	for _, one := range list {
		if !one.ClaimedAt.IsZero() {
			require.Contains(t, seen, one.ID)
			claimed++
		}
	}
	require.Len(t, seen, claimed)
	for id := range seen {
		require.NoError(t, other.native().Release(t.Context(), id))
	}
	endAll(t, leader)
}
