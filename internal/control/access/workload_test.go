package access

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/workload"
)

// tokens signs with a key of the test, which the resolver believes until it is forgotten.
type tokens struct {
	t   *testing.T
	key *rsa.PrivateKey
	all []jose.JSONWebKey
}

func (b *bundle) believes(t *testing.T) *tokens {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	k := &tokens{t, key, []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256"}}}
	b.Believe(func() []jose.JSONWebKey { return k.all })
	return k
}

func (k *tokens) sign(c *claims.Claims) acl.Secret {
	payload, err := json.Marshal(c)
	require.NoError(k.t, err)
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: k.key, KeyID: "k"}}, nil)
	require.NoError(k.t, err)
	o, err := s.Sign(payload)
	require.NoError(k.t, err)
	text, err := o.CompactSerialize()
	require.NoError(k.t, err)
	return acl.Secret(text)
}

// runs puts an allocation into the state.
func (b *bundle) runs(a *drover.Allocation) {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	b.log.index++
	tx := b.log.fsm.Store().Begin(b.log.index)
	tx.PutAllocation(a)
	tx.Commit()
}

// TestWorkloads: a task's identity is a caller with what every workload may and what the policies of its job say, while it runs.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := b.believes(t)
	alloc := &drover.Allocation{
		ID: b.deps.IDs.New(), Namespace: "blue", JobID: "job", TaskGroup: "g", ClientStatus: "running", DesiredStatus: "run",
	}
	b.runs(alloc)
	stamp := claims.Stamp{Region: "global", Now: b.clock.Now(), ID: "1"}
	token := k.sign(claims.Workload(stamp, alloc, "web", &workload.Identity{TTL: time.Hour}))

	who := b.who(token)
	require.False(t, who.Management())
	require.Equal(t, "workload/"+alloc.ID+"/web", who.Token.AccessorID)
	for path, may := range map[string]bool{
		"nomad/jobs": true, "nomad/jobs/job": true, "nomad/jobs/job/g": true, "nomad/jobs/job/g/web": true, "nomad/jobs/job/g/other": false,
		"nomad/jobs/job/h": false, "nomad/jobs/other": false, "nomad": false, "": false, "nomad/jobs/job/g/web/x": false,
	} {
		require.Equal(t, may, who.Variable("blue", path, policy.ReadVariable), path)
		require.Equal(t, may, who.Variable("blue", path, policy.ListVariables), path)
		require.False(t, who.Variable("blue", path, policy.WriteVariable), path)
		require.False(t, who.Variable("default", path, policy.ReadVariable), path)
	}
	require.True(t, who.Namespace("blue", policy.ReadServices))
	require.False(t, who.Namespace("default", policy.ReadServices))
	require.False(t, who.Namespace("blue", policy.ReadJob))

	bound := func(name, task string) {
		_, err := b.PutPolicy(t.Context(), b.root, &acl.Policy{
			Name: name, Rules: `namespace "blue" {
				capabilities = ["read-job"]
				variables { path "nomad/jobs/job" { capabilities = ["write"] } }
			}`,
			JobACL: &acl.JobACL{Namespace: "blue", JobID: "job", Group: "g", Task: task},
		})
		require.NoError(t, err)
	}
	bound("others", "db")
	require.False(t, b.who(token).Namespace("blue", policy.ReadJob))
	bound("own", "web")
	require.True(t, b.who(token).Namespace("blue", policy.ReadJob))
	require.True(t, b.who(token).Variable("blue", "nomad/jobs/job", policy.WriteVariable))
	require.True(t, b.who(token).Variable("blue", "nomad/jobs/job", policy.ReadVariable), "what every workload may stays")

	b.clock.add(time.Hour + DefaultLeeway + time.Second)
	_, err := b.Resolve(token)
	require.ErrorIs(t, err, ErrExpired)
	token = k.sign(claims.Workload(stamp, alloc, "web", &workload.Identity{}))
	require.NotNil(t, b.who(token))
	ended := *alloc
	ended.ClientStatus = "complete"
	b.runs(&ended)
	_, err = b.Resolve(token)
	require.ErrorIs(t, err, ErrNoToken)
}

// TestIdentitiesThatAreNoCallers: what is for somebody else, of another kind, of another key or forged is as unknown as any wrong secret.
func TestIdentitiesThatAreNoCallers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := b.believes(t)
	alloc := &drover.Allocation{
		ID: b.deps.IDs.New(), Namespace: "blue", JobID: "job", TaskGroup: "g", ClientStatus: "running", DesiredStatus: "run",
	}
	b.runs(alloc)
	stamp := claims.Stamp{Region: "global", Now: b.clock.Now(), ID: "1"}
	own := &workload.Identity{}
	elsewhere := *alloc
	elsewhere.Namespace = "red"
	unknown := *alloc
	unknown.ID = b.deps.IDs.New()
	for what, c := range map[string]*claims.Claims{
		"for AWS":                   claims.Workload(stamp, alloc, "web", &workload.Identity{Name: "aws", Audience: []string{"sts"}}),
		"of a service":              claims.Workload(stamp, alloc, "web", &workload.Identity{ServiceName: "db"}),
		"of another namespace":      claims.Workload(stamp, &elsewhere, "web", own),
		"of an unknown allocation":  claims.Workload(stamp, &unknown, "web", own),
		"of a node":                 claims.Node(stamp, &drover.Node{ID: "n"}, time.Hour),
		"that introduces a machine": claims.Introduction(stamp, "n", "default", time.Hour),
	} {
		_, err := b.Resolve(k.sign(c))
		require.ErrorIs(t, err, ErrNoToken, what)
	}
	good := k.sign(claims.Workload(stamp, alloc, "web", own))
	require.NotNil(t, b.who(good))
	k.all = nil
	b.clock.add(trusted)
	_, err := b.Resolve(good)
	require.ErrorIs(t, err, ErrNoToken, "its key was removed")
	require.NotContains(t, err.Error(), string(good))
}
