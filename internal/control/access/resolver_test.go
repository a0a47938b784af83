package access

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// TestResolve: what a secret stands for changes with the entry of the log that changes it.
func TestResolve(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reads := func(secret acl.Secret) bool { return b.who(secret).Namespace("default", policy.ReadJob) }
	b.policy("reader", `namespace "default" { policy = "read" }`)
	k := b.client("reader", "not-there-yet")
	require.True(t, reads(k.SecretID))
	require.Same(t, b.who(k.SecretID), b.who(k.SecretID), "it is remembered")
	require.False(t, b.who(k.SecretID).Namespace("default", policy.SubmitJob))
	require.True(t, b.who(k.SecretID).Is(k.AccessorID))

	b.policy("not-there-yet", `namespace "default" { capabilities = ["submit-job"] }`)
	require.True(t, b.who(k.SecretID).Namespace("default", policy.SubmitJob))
	b.policy("reader", `namespace "default" { policy = "deny" }`)
	require.False(t, reads(k.SecretID), "the policy changed")
	_, err := b.DeletePolicies(t.Context(), b.root, "reader")
	require.NoError(t, err)
	require.True(t, b.who(k.SecretID).Namespace("default", policy.SubmitJob), "what denied is gone")

	r := b.role("dev", "not-there-yet")
	m := b.token(&acl.Token{Type: acl.ClientToken, Roles: []*acl.TokenRole{{Name: "dev"}}})
	require.True(t, b.who(m.SecretID).Namespace("default", policy.SubmitJob), "by its role")
	_, err = b.DeleteRoles(t.Context(), b.root, r.ID)
	require.NoError(t, err)
	require.False(t, b.who(m.SecretID).Namespace("default", policy.SubmitJob))
	_, err = b.DeleteTokens(t.Context(), b.root, k.AccessorID)
	require.NoError(t, err)
	_, err = b.Resolve(k.SecretID)
	fails(t, err, drover.Forbidden, "ACL token not found")

	boot, _, err := b.Bootstrap(t.Context(), "")
	require.NoError(t, err)
	require.True(t, b.who(boot.SecretID).Management())
}

// TestResolveStrangers: who shows nothing is anonymous, and the configuration's token may do everything.
func TestResolveStrangers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.True(t, b.root.Management() && b.root.Is("api_token"))
	require.Empty(t, b.root.Token.SecretID)
	require.False(t, b.who("").Namespace("default", policy.ListJobs), "nothing, as long as there is no such policy")
	b.policy("anonymous", `namespace "default" { capabilities = ["list-jobs"] }`)
	require.True(t, b.who("").Namespace("default", policy.ListJobs))
	require.Equal(t, "anonymous", b.who("").Token.AccessorID)
	k := b.client("reader")
	for _, secret := range []acl.Secret{
		"x", "anonymous", "api_token", acl.Secret(k.AccessorID), k.SecretID + "0", k.SecretID[:35], apiToken + "x", "\x00",
	} {
		_, err := b.Resolve(secret)
		fails(t, err, drover.Forbidden, "ACL token not found")
	}
	none := NewResolver(b.log.fsm.Store(), b.clock, "", 0)
	_, err := none.Resolve(apiToken)
	fails(t, err, drover.Forbidden, "ACL token not found")
	who, err := none.Resolve("")
	require.NoError(t, err)
	require.False(t, who.Management(), "no token in the configuration is not the empty one")
}

// TestResolveExpired: a token is taken until its end and a little longer, as clocks differ, whatever leeway somebody configures.
func TestResolveExpired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.policy("p", `node { policy = "read" }`)
	k := b.token(&acl.Token{Type: acl.ClientToken, Policies: []string{"p"}, ExpirationTTL: acl.TTL(time.Minute)})
	far := NewResolver(b.log.fsm.Store(), b.clock, "", time.Hour)
	b.clock.add(time.Minute + DefaultLeeway - 1)
	require.True(t, b.who(k.SecretID).Part(policy.Node, policy.Read))
	b.clock.add(1)
	_, err := b.Resolve(k.SecretID)
	fails(t, err, drover.Forbidden, "ACL token expired")
	_, err = far.Resolve(k.SecretID)
	require.NoError(t, err)
	b.clock.add(MaxLeeway - DefaultLeeway)
	_, err = far.Resolve(k.SecretID)
	fails(t, err, drover.Forbidden, "ACL token expired")
	b.clock.add(-time.Minute)
	require.True(t, b.who(k.SecretID).Part(policy.Node, policy.Read), "a clock that jumped and was set back")
}

// TestResolveAfterARestore: another state has tokens and policies of the same names and indexes, and they are not those of the caches.
func TestResolveAfterARestore(t *testing.T) {
	t.Parallel()
	b, other := setup(t), setup(t)
	const secret = "3f4a0fcd-7c42-773c-25db-2d31ba0c05fe"
	for x, rules := range map[*bundle]string{b: `node { policy = "write" }`, other: `node { policy = "read" }`} {
		x.policy("p", rules)
		_, _, err := x.UpdateToken(t.Context(), x.root, &acl.Token{
			AccessorID: "b780e702-98ce-521f-2e5f-c6b87de05b24", SecretID: secret, Type: acl.ClientToken, Policies: []string{"p"},
		})
		require.NoError(t, err)
	}
	require.True(t, b.who(secret).Part(policy.Node, policy.Write))
	require.Equal(t, b.log.fsm.Store().Index(), other.log.fsm.Store().Index())
	var image bytes.Buffer
	require.NoError(t, other.log.fsm.Snapshot(&image))
	require.NoError(t, b.log.fsm.Restore(&image))
	require.False(t, b.who(secret).Part(policy.Node, policy.Write))
	require.True(t, b.who(secret).Part(policy.Node, policy.Read))
}

// TestUnreadableRules: a policy that this program cannot read might deny, so who has it is refused until it can.
func TestUnreadableRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.policy("p", `node { policy = "write" }`)
	k := b.client("p", "q")
	q := &acl.Policy{Name: "q", Rules: `moon { policy = "deny" }`}
	_, _, err := b.log.Propose(t.Context(), &command.UpsertACLPolicies{Policies: []*acl.Policy{q}})
	require.NoError(t, err)
	_, err = b.Resolve(k.SecretID)
	fails(t, err, drover.Internal, `ACL policy "q" cannot be read by this server`)
}

// TestCachesAreBounded.
func TestCachesAreBounded(t *testing.T) {
	t.Parallel()
	cache := map[int]int{}
	for i := range 100 {
		put(cache, 10, i%30, i)
		require.LessOrEqual(t, len(cache), 10)
		require.Equal(t, i, cache[i%30])
	}
	b := setup(t)
	for i := range 50 {
		_, err := b.Resolve(acl.Secret(fmt.Sprint("wrong", i)))
		require.Error(t, err)
	}
	require.Empty(t, b.Resolver.now.Load().resolved, "who guesses fills no cache")
}

// TestResolveBesideChanges: many readers while policies and tokens change. None sees more than some state allowed.
func TestResolveBesideChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.policy("p", `node { policy = "read" }`)
	k := b.client("p")
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		wg.Go(func() { // ends with the context
			for ctx.Err() == nil {
				who, err := b.Resolve(k.SecretID)
				if err != nil || who.Part(policy.Node, policy.Write) || who.Token.AccessorID != k.AccessorID {
					t.Errorf("%v, %v", who, err)
					return
				}
			}
		})
	}
	for i := range 200 {
		b.policy("p", fmt.Sprintf(`node { policy = %q }`, []string{"read", "deny"}[i%2]))
		b.client("p")
	}
	cancel()
	wg.Wait()
}

// filled is a state of 10,000 tokens and 1,000 policies.
func filled(b testing.TB) (*bundle, []acl.Secret) {
	x := setup(b)
	policies := make([]*acl.Policy, 1000)
	for i := range policies {
		policies[i] = &acl.Policy{Name: fmt.Sprintf("team-%d", i), Rules: fmt.Sprintf(`
			namespace "team-%d" { policy = "write" }
			namespace "shared-*" { policy = "read" }
			node { policy = "read" }`, i)}
	}
	_, _, err := x.log.Propose(b.Context(), &command.UpsertACLPolicies{Policies: policies})
	require.NoError(b, err)
	tokens := make([]*acl.Token, 10_000)
	secrets := make([]acl.Secret, len(tokens))
	for i := range tokens {
		secrets[i] = acl.Secret(x.deps.IDs.New())
		tokens[i] = &acl.Token{AccessorID: x.deps.IDs.New(), SecretID: secrets[i], Type: acl.ClientToken}
		for j := range 3 {
			tokens[i].Policies = append(tokens[i].Policies, policies[(i+j*7)%1000].Name)
		}
	}
	_, _, err = x.log.Propose(b.Context(), &command.UpsertACLTokens{Tokens: tokens})
	require.NoError(b, err)
	return x, secrets
}

// BenchmarkResolve: a token that is remembered, one that is compiled from policies that are parsed, and one whose own policy changed, so
// that it is parsed and compiled. Each of 10,000 tokens has three of 1,000 policies.
func BenchmarkResolve(b *testing.B) {
	x, secrets := filled(b)
	resolve := func(b *testing.B, secret acl.Secret) {
		b.Helper()
		if _, err := x.Resolve(secret); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resolve(b, secrets[7])
		}
	})
	b.Run("first", func(b *testing.B) { // in the state, with its policies parsed and not compiled together
		for _, s := range secrets[:1000] {
			resolve(b, s)
		}
		b.ReportAllocs()
		for b.Loop() {
			x.Resolver.now.Store(nil)
			x.compiled = map[string]*rights.Rights{}
			resolve(b, secrets[7])
		}
	})
	b.Run("after a change of its policy", func(b *testing.B) {
		var spent time.Duration
		for i := 0; b.Loop(); i++ {
			p := *x.log.fsm.Store().Snapshot().ACLPolicy("team-7")
			_, _, err := x.log.Propose(b.Context(), &command.UpsertACLPolicies{Policies: []*acl.Policy{&p}})
			require.NoError(b, err)
			began := time.Now()
			resolve(b, secrets[7])
			spent += time.Since(began)
		}
		b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/resolve")
	})
	b.Run("unknown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = x.Resolve("3f4a0fcd-7c42-773c-25db-2d31ba0c05fe")
		}
	})
}
