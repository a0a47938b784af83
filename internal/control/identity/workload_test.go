package identity

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/workload"
)

// signer shows the claims in place of a token.
type signer struct {
	mu  sync.Mutex
	err error
}

func (s *signer) Sign(_ context.Context, claims any) (token, keyID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := json.Marshal(claims)
	if s.err != nil {
		err = s.err
	}
	return string(data), "k", err
}

func (s *signer) SignBytes(_ context.Context, _ jose.SignatureAlgorithm, typ string, payload []byte) (token, keyID string, err error) {
	return typ + string(payload), "k-ed25519", s.err
}

func (*signer) PublicKeys() []jose.JSONWebKey { return nil }

// TestWorkloads: a node gets tokens of its own allocations, as the server's copy of the job says, while they have not ended.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	st := store.New()
	keys := &signer{}
	issuer := New(Deps{Signer: keys, Store: st, Clock: clock.Wall{}, IDs: id.NewSeeded(1), Issuer: "https://i", Region: "global"})
	job := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{
		{
			Name: "web", Identity: &workload.Identity{Env: true},
			Identities: []*workload.Identity{{Name: "aws", Audience: []string{"sts"}, TTL: time.Hour, ExtraClaims: []string{"pool"}}},
		},
		{Name: "after", Lifecycle: &drover.TaskLifecycle{Hook: drover.HookPoststop}, Identity: &workload.Identity{Name: "default"}},
	}}}}
	put := func(name, node, desired, client string) {
		tx := st.Begin(st.Index() + 1)
		tx.PutAllocation(&drover.Allocation{
			ID: name, NodeID: node, Namespace: "default", JobID: "j", Job: job, TaskGroup: "g", DesiredStatus: desired, ClientStatus: client,
		})
		tx.Commit()
	}
	tx := st.Begin(st.Index() + 1)
	tx.PutNode(&drover.Node{ID: "n1", NodePool: "gpu"})
	tx.PutNamespace(&tenancy.Namespace{
		Name: "default", RequiredExtraClaims: map[string]string{"team": "blue"}, OptionalExtraClaims: map[string]string{"pool": "${node.pool}"},
	})
	tx.Commit()
	put("mine", "n1", "run", "running")
	put("other", "n2", "run", "running")
	put("ended", "n1", "run", "failed")
	put("stopping", "n1", "stop", "running")

	ask := func(node, alloc, task, name string) (exchange.SignedIdentity, bool) {
		out, unknown, err := issuer.Workloads(t.Context(), node, []exchange.IdentityRequest{{AllocID: alloc, Task: task, Name: name}})
		require.NoError(t, err)
		require.Len(t, out, 1)
		return out[0], unknown
	}
	got, unknown := ask("n1", "mine", "web", "aws")
	require.False(t, unknown)
	require.Contains(t, got.Token, `"sub":"global:default:j:g:web:aws"`)
	require.Contains(t, got.Token, `"iss":"https://i"`)
	require.Contains(t, got.Token, `"pool":"gpu"`)
	require.Contains(t, got.Token, `"team":"blue"`)
	require.Equal(t, time.Hour, got.Expires.Sub(got.Made))
	got, _ = ask("n1", "mine", "web", "")
	require.Contains(t, got.Token, `"aud":"nomadproject.io"`)
	require.Contains(t, got.Token, `"team":"blue"`)
	require.NotContains(t, got.Token, `"pool"`)
	require.True(t, got.Expires.IsZero())
	got, _ = ask("n1", "stopping", "after", "default")
	require.NotEmpty(t, got.Token)

	for _, c := range []struct{ node, alloc, task, name, why string }{
		{"n1", "other", "web", "", "the node has no such allocation"}, // a rogue node
		{"n1", "none", "web", "", "the node has no such allocation"},
		{"", "mine", "web", "", "the node has no such allocation"},
		{"n1", "ended", "web", "", "has ended"},
		{"n1", "stopping", "web", "", "only its poststop tasks"},
		{"n1", "mine", "web", "gcp", `no identity "gcp"`},
		{"n1", "mine", "after", "aws", `no identity "aws"`},
		{"n1", "mine", "db", "", `no task "db"`},
	} {
		got, unknown := ask(c.node, c.alloc, c.task, c.name)
		require.Contains(t, got.Refused, c.why)
		require.Empty(t, got.Token)
		require.Equal(t, c.alloc == "none", unknown)
	}
	_, _, err := issuer.Workloads(t.Context(), "n1", make([]exchange.IdentityRequest, exchange.MaxIdentities+1))
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	keys.err = drover.Errorf(drover.Unavailable, "no key")
	_, _, err = issuer.Workloads(t.Context(), "n1", []exchange.IdentityRequest{{AllocID: "mine", Task: "web"}})
	require.ErrorContains(t, err, "no key")
}
