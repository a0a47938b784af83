package claims

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/workload"
)

var now = time.Unix(1_700_000_000, 0)

func signed(t *testing.T, key *rsa.PrivateKey, id string, c *Claims) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	require.NoError(t, err)
	payload, err := json.Marshal(c)
	require.NoError(t, err)
	object, err := s.Sign(payload)
	require.NoError(t, err)
	text, err := object.CompactSerialize()
	require.NoError(t, err)
	return text
}

func alloc() *drover.Allocation {
	job := &drover.Job{ID: "job/dispatch-1", ParentID: "job"}
	return &drover.Allocation{ID: "a1", Namespace: "ns", JobID: job.ID, TaskGroup: "g", Job: job}
}

func shown(t *testing.T, c *Claims) map[string]any {
	t.Helper()
	data, err := json.Marshal(c)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// TestWorkload: names and values are those that people match in AWS, GCP and Vault, and nobody's extra claim replaces one of them.
func TestWorkload(t *testing.T) {
	t.Parallel()
	s := Stamp{Issuer: "https://issuer", Region: "global", Now: now, ID: "j1"}
	c := Workload(s, alloc(), "web", &workload.Identity{Name: "aws", Audience: []string{"sts"}, TTL: time.Hour})
	c.Extra = map[string]string{"team": "blue", "sub": "root", "nomad_job_id": "other", "drover_runner_id": "x"}
	require.Equal(t, map[string]any{
		"iss": "https://issuer", "sub": "global:ns:job:g:web:aws", "aud": "sts", "jti": "j1",
		"iat": 1.7e9, "nbf": 1.7e9, "exp": 1.7e9 + 3600, "nomad_namespace": "ns", "nomad_job_id": "job", "nomad_allocation_id": "a1",
		"nomad_task": "web", "team": "blue",
	}, shown(t, c))
	require.False(t, c.IsWorkload(), "it is for others")
	c = Workload(s, alloc(), "web", &workload.Identity{})
	require.True(t, c.IsWorkload())
	require.Nil(t, c.Expiry)
	require.Equal(t, "global:ns:job:g:web:default", c.Subject)
	c = Workload(s, alloc(), "web", &workload.Identity{Name: "consul", ServiceName: "db"})
	require.Equal(t, []string{"", "db", "global:ns:job:g:db:consul"}, []string{c.Task, c.Service, c.Subject})
}

// TestNode: an identity of a node has nine claims in Nomad, and none of the kinds is taken for another one.
func TestNode(t *testing.T) {
	t.Parallel()
	s := Stamp{Region: "global", Now: now, ID: "j1"}
	n := Node(s, &drover.Node{ID: "n1", NodePool: "gpu", Datacenter: "dc1"}, time.Hour)
	require.Len(t, shown(t, n), 9)
	require.Equal(t, "node:global:gpu:n1:default", n.Subject)
	i := Introduction(s, "worker", "gpu", time.Hour)
	require.Equal(t, []bool{true, false, false}, []bool{n.IsNode(), n.IsIntroduction(), n.IsWorkload()})
	require.Equal(t, []bool{false, true, false}, []bool{i.IsNode(), i.IsIntroduction(), i.IsWorkload()})
}

// TestVerify: a token is believed that a known key signed, in the way of that key, and for as long as it says.
func TestVerify(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keys := []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1", Algorithm: "RS256"}}
	made := Workload(Stamp{Region: "r", Now: now, ID: "j"}, alloc(), "web", &workload.Identity{TTL: time.Minute})
	good := signed(t, key, "k1", made)
	c, err := Verify(good, keys)
	require.NoError(t, err)
	require.Equal(t, made, c)
	require.NoError(t, c.Check(now.Add(time.Minute+5*time.Second), 5*time.Second))
	require.ErrorIs(t, c.Check(now.Add(time.Minute+6*time.Second), 5*time.Second), ErrExpired)
	require.NoError(t, c.Check(now.Add(-5*time.Second), 5*time.Second))
	require.ErrorIs(t, c.Check(now.Add(-6*time.Second), 5*time.Second), ErrExpired)
	begin, end, err := Life(good)
	require.NoError(t, err)
	require.Equal(t, []int64{now.Unix(), now.Unix() + 60}, []int64{begin.Unix(), end.Unix()})

	part := strings.Split(good, ".")
	hmacOfPublic := func() string { // the classic: the public key as a shared secret
		der := key.PublicKey.N.Bytes()
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: der, KeyID: "k1"}}, nil)
		require.NoError(t, err)
		o, err := s.Sign([]byte(`{"sub":"x"}`))
		require.NoError(t, err)
		text, err := o.CompactSerialize()
		require.NoError(t, err)
		return text
	}
	for what, token := range map[string]string{
		"another key under the name": signed(t, other, "k1", made), "a name that is not known": signed(t, key, "k2", made),
		"no name": signed(t, key, "", made), "no signature": part[0] + "." + part[1] + ".", "none": "eyJhbGciOiJub25lIn0." + part[1] + ".",
		"another payload": part[0] + ".eyJzdWIiOiJ4In0." + part[2], "a shared secret": hmacOfPublic(), "words": "a.b.c", "": "",
		"too long": good + strings.Repeat("x", MaxToken),
	} {
		_, err := Verify(token, keys)
		require.ErrorIs(t, err, ErrMalformed, what)
	}
}

// TestHalf: tokens of many tasks are not renewed in one moment, and never in the last third of their life.
func TestHalf(t *testing.T) {
	t.Parallel()
	require.Equal(t, 30*time.Minute, Half(time.Hour, 0))
	require.InDelta(t, float64(36*time.Minute), float64(Half(time.Hour, 0.999)), float64(10*time.Second))
}
