package fsm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

func token(accessor, secret string, change ...func(*acl.Token)) *acl.Token {
	k := &acl.Token{
		AccessorID: accessor, SecretID: acl.Secret(secret), Type: acl.ClientToken, Policies: []string{"p"}, CreateTime: time.Unix(1, 0).UTC(),
	}
	for _, c := range change {
		c(k)
	}
	return k
}

// TestBootstrapOnce: it works once, and again only with the index of the last time.
func TestBootstrapOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	boot := func(accessor string, reset uint64) (any, error) {
		return b.try(&command.BootstrapACL{Token: token(accessor, "secret of "+accessor), ResetIndex: reset})
	}
	made, err := boot("a", 0)
	require.NoError(t, err)
	require.Equal(t, b.index, made.(*acl.Token).CreateIndex)
	first := b.index
	_, err = boot("b", 0)
	require.ErrorContains(t, err, fmt.Sprintf("ACL bootstrap already done (reset index: %d)", first))
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	_, err = boot("b", first+7)
	require.ErrorContains(t, err, fmt.Sprintf("Invalid bootstrap reset index (specified %d, reset index: %d)", first+7, first))
	require.Nil(t, b.now().ACLToken("b"))
	_, err = boot("b", first)
	require.NoError(t, err)
	require.Equal(t, &acl.Bootstrap{CreateIndex: first, ModifyIndex: b.index}, b.now().ACLBootstrap())
	require.NotNil(t, b.now().ACLToken("a"), "the earlier tokens stay")
	_, err = boot("c", first)
	require.ErrorContains(t, err, "Invalid bootstrap reset index")
}

// TestTokensKeepWhatMustNotChange: the secret, the end, the region and the moment of creation.
func TestTokensKeepWhatMustNotChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	end := time.Unix(100, 0).UTC()
	b.do(&command.UpsertACLTokens{Tokens: []*acl.Token{token("a", "s", func(k *acl.Token) {
		k.ExpirationTime, k.ExpirationTTL, k.Global = &end, acl.TTL(time.Minute), true
	})}})
	created := b.index
	out := b.do(&command.UpsertACLTokens{Tokens: []*acl.Token{token("a", "s", func(k *acl.Token) {
		k.Name, k.CreateTime = "new", time.Unix(50, 0)
	})}}).([]*acl.Token)
	require.Equal(t, []*acl.Token{{
		AccessorID: "a", SecretID: "s", Name: "new", Type: acl.ClientToken, Policies: []string{"p"}, Global: true,
		CreateTime: time.Unix(1, 0).UTC(), ExpirationTime: &end, ExpirationTTL: acl.TTL(time.Minute), CreateIndex: created, ModifyIndex: b.index,
	}}, out)
	for want, tokens := range map[string][]*acl.Token{
		"its secret cannot change":           {token("a", "other")},
		"its secret is in use":               {token("b", "s")},
		"must have an accessor and a secret": {token("b", "")},
		"is given twice":                     {token("b", "b"), token("b", "c")},
		"cannot find role r": {token("c", "c"), token("d", "d", func(k *acl.Token) {
			k.Roles = []*acl.TokenRole{{ID: "r"}}
		})},
	} {
		_, err := b.try(&command.UpsertACLTokens{Tokens: tokens})
		require.ErrorContains(t, err, want)
	}
	_, err := b.try(&command.UpsertACLTokens{Tokens: []*acl.Token{token("x", "t"), token("y", "t")}})
	require.ErrorContains(t, err, "its secret is in use")
	require.Len(t, slices.Collect(b.now().ACLTokens("")), 1, "all or none")
}

// TestRolesNeedTheirPolicies, and names of their own.
func TestRolesNeedTheirPolicies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := func(id, name, policy string) *command.UpsertACLRoles {
		return &command.UpsertACLRoles{Roles: []*acl.Role{{ID: id, Name: name, Policies: []*acl.RolePolicy{{Name: policy}}}}}
	}
	_, err := b.try(role("1", "dev", "p"))
	require.ErrorContains(t, err, "cannot find policy p")
	b.do(&command.UpsertACLPolicies{Policies: []*acl.Policy{{Name: "p", Rules: "r"}}})
	b.do(role("1", "dev", "p"))
	_, err = b.try(role("2", "dev", "p"))
	require.ErrorContains(t, err, "role with name dev already exists")
	b.do(role("1", "ops", "p"))
	require.Nil(t, b.now().ACLRoleByName("dev"))
	require.Equal(t, "1", b.now().ACLRoleByName("ops").ID)
	b.do(&command.DeleteACLPolicies{Names: []string{"p"}})
	require.NotNil(t, b.now().ACLRole("1"), "a role outlives its policies, and gives less")
	for want, c := range map[string]command.Command{
		"ACL policy not found: p": &command.DeleteACLPolicies{Names: []string{"p"}},
		"ACL role not found: 9":   &command.DeleteACLRoles{IDs: []string{"1", "9"}},
		"ACL token not found: 9":  &command.DeleteACLTokens{AccessorIDs: []string{"9"}},
	} {
		_, err = b.try(c)
		require.ErrorContains(t, err, want)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	}
	require.NotNil(t, b.now().ACLRole("1"), "all or none")
}

// TestOneTimeTokensWorkOnce: for their token, until they expire; a new one replaces the one before.
func TestOneTimeTokensWorkOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(secret string) {
		once := &acl.OneTimeToken{OneTimeSecretID: acl.Secret(secret), AccessorID: "a", ExpiresAt: time.Unix(10, 0)}
		b.do(&command.PutOneTimeToken{Token: once})
	}
	exchange := func(secret string, at int64) (any, error) {
		return b.try(&command.ExchangeOneTimeToken{Secret: acl.Secret(secret), Time: time.Unix(at, 0).UnixNano()})
	}
	_, err := b.try(&command.PutOneTimeToken{Token: &acl.OneTimeToken{OneTimeSecretID: "x", AccessorID: "a"}})
	require.ErrorContains(t, err, "ACL token not found")
	b.do(&command.UpsertACLTokens{Tokens: []*acl.Token{token("a", "s")}})
	put("one")
	put("two")
	for _, secret := range []string{"one", "", "s", "three"} {
		_, err = exchange(secret, 1)
		require.EqualError(t, err, "Permission denied")
	}
	_, err = exchange("two", 10)
	require.EqualError(t, err, "Permission denied")
	got, err := exchange("two", 9)
	require.NoError(t, err)
	require.Equal(t, acl.Secret("s"), got.(*acl.Token).SecretID)
	_, err = exchange("two", 9)
	require.EqualError(t, err, "Permission denied")
	put("three")
	b.do(&command.DeleteACLTokens{AccessorIDs: []string{"a"}})
	_, err = exchange("three", 1)
	require.EqualError(t, err, "Permission denied", "it went with its token")
}

// TestEventsHaveNoSecrets: what is told of access control names it and shows none of its secrets.
func TestEventsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(&command.BootstrapACL{Token: token("a", "hidden-1")})
	require.Equal(t, []string{"ACLToken/ACLTokenUpserted"}, b.lastTypes())
	b.do(&command.UpsertACLPolicies{Policies: []*acl.Policy{{Name: "p"}}})
	require.Equal(t, []string{"ACLPolicy/ACLPolicyUpserted"}, b.lastTypes())
	b.do(&command.UpsertACLRoles{Roles: []*acl.Role{{ID: "1", Name: "r"}}})
	require.Equal(t, []string{"ACLRole/ACLRoleUpserted"}, b.lastTypes())
	b.do(&command.DeleteACLPolicies{Names: []string{"p"}})
	require.Equal(t, []string{"ACLPolicy/ACLPolicyDeleted"}, b.lastTypes())
	b.do(&command.DeleteACLRoles{IDs: []string{"1"}})
	require.Equal(t, []string{"ACLRole/ACLRoleDeleted"}, b.lastTypes())
	told := len(b.told.events)
	b.do(&command.PutOneTimeToken{Token: &acl.OneTimeToken{OneTimeSecretID: "hidden-2", AccessorID: "a", ExpiresAt: time.Unix(9, 0)}})
	require.Len(t, b.told.events, told, "nobody is told of one-time tokens")
	b.do(&command.DeleteACLTokens{AccessorIDs: []string{"a"}})
	require.Equal(t, []string{"ACLToken/ACLTokenDeleted"}, b.lastTypes())
	text, err := json.Marshal(b.told.events)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hidden")
	require.Contains(t, string(text), `"Key":"a"`)
	require.NotContains(t, fmt.Sprintf("%+v %#v", b.told.events, b.told.events), "hidden")
}

// acl draws commands of access control over a handful of names.
func (d draw) acl() command.Command {
	accessor, end := d.id("k", 3), time.Unix(rapid.Int64Range(1, 1000).Draw(d.t, "end"), 0).UTC()
	switch rapid.IntRange(0, 9).Draw(d.t, "of acl") {
	case 0:
		return &command.BootstrapACL{Token: d.token(accessor), ResetIndex: uint64(rapid.IntRange(0, 30).Draw(d.t, "reset"))}
	case 1, 2:
		return &command.UpsertACLTokens{Tokens: []*acl.Token{d.token(accessor), d.token(d.id("k", 3))}}
	case 3:
		return &command.DeleteACLTokens{AccessorIDs: []string{accessor}}
	case 4:
		p := &acl.Policy{Name: d.id("p", 3), Rules: d.id("rules", 2), JobACL: &acl.JobACL{JobID: d.id("j", 2)}}
		return &command.UpsertACLPolicies{Policies: []*acl.Policy{p}}
	case 5:
		return &command.DeleteACLPolicies{Names: []string{d.id("p", 3), d.id("p", 3)}}
	case 6:
		r := &acl.Role{ID: d.id("r", 3), Name: d.id("name", 2), Policies: []*acl.RolePolicy{{Name: d.id("p", 3)}}}
		return &command.UpsertACLRoles{Roles: []*acl.Role{r}}
	case 7:
		return &command.DeleteACLRoles{IDs: []string{d.id("r", 3)}}
	case 8:
		once := &acl.OneTimeToken{OneTimeSecretID: acl.Secret(d.id("once", 2)), AccessorID: accessor, ExpiresAt: end}
		return &command.PutOneTimeToken{Token: once}
	}
	if rapid.Bool().Draw(d.t, "exchange") {
		return &command.ExchangeOneTimeToken{Secret: acl.Secret(d.id("once", 2)), Time: end.UnixNano()}
	}
	return &command.ExpireACLTokens{AccessorIDs: []string{accessor, d.id("k", 3)}, Time: end.UnixNano()}
}

func (d draw) token(accessor string) *acl.Token {
	return token(accessor, d.pick("secret", "s-"+accessor, "s-"+accessor, "s-other"), func(k *acl.Token) {
		if rapid.Bool().Draw(d.t, "ends") {
			k.ExpirationTime = new(time.Unix(rapid.Int64Range(1, 1000).Draw(d.t, "end"), 0).UTC())
		}
		if rapid.Bool().Draw(d.t, "linked") {
			k.Roles = []*acl.TokenRole{{ID: d.id("r", 3)}}
		}
	})
}

// aclModel is the state of access control as maps.
type aclModel struct {
	boot     *acl.Bootstrap
	tokens   map[string]*acl.Token
	policies map[string]*acl.Policy
	roles    map[string]*acl.Role
	once     map[string]*acl.OneTimeToken
}

// store puts a token as the state machine should, or reports that it must refuse it.
func (m *aclModel) store(index uint64, tokens []*acl.Token) bool {
	next := maps.Clone(m.tokens)
	for i, k := range tokens {
		for _, l := range k.Roles {
			if m.roles[l.ID] == nil {
				return false
			}
		}
		for _, other := range tokens[:i] {
			if other.AccessorID == k.AccessorID {
				return false
			}
		}
		c := k.Copy()
		c.CreateIndex, c.ModifyIndex = index, index
		if old := m.tokens[k.AccessorID]; old != nil {
			if old.SecretID != k.SecretID {
				return false
			}
			c.CreateIndex, c.ExpirationTime = old.CreateIndex, old.ExpirationTime
		}
		next[k.AccessorID] = c
	}
	secrets := map[acl.Secret]bool{}
	for _, k := range next {
		if secrets[k.SecretID] {
			return false
		}
		secrets[k.SecretID] = true
	}
	m.tokens = next
	return true
}

func remove[T any](of map[string]T, keys []string) bool {
	for _, k := range keys {
		if _, has := of[k]; !has {
			return false
		}
	}
	for _, k := range keys {
		delete(of, k)
	}
	return true
}

func (m *aclModel) role(index uint64, r *acl.Role) bool {
	for id, other := range m.roles {
		if other.Name == r.Name && id != r.ID {
			return false
		}
	}
	for _, p := range r.Policies {
		if m.policies[p.Name] == nil {
			return false
		}
	}
	c := r.Copy()
	c.CreateIndex, c.ModifyIndex = index, index
	if old := m.roles[r.ID]; old != nil {
		c.CreateIndex = old.CreateIndex
	}
	m.roles[r.ID] = c
	return true
}

func (m *aclModel) exchange(secret acl.Secret, now time.Time) bool {
	for accessor, o := range m.once {
		if o.OneTimeSecretID == secret {
			k := m.tokens[accessor]
			if !now.Before(o.ExpiresAt) || k.ExpirationTime != nil && !now.Before(*k.ExpirationTime) {
				return false
			}
			delete(m.once, accessor)
			return true
		}
	}
	return false
}

// apply does what the command should, and reports whether it should work.
func (m *aclModel) apply(index uint64, c command.Command) bool {
	switch c := c.(type) {
	case *command.BootstrapACL:
		if m.boot != nil && m.boot.ModifyIndex != c.ResetIndex || !m.store(index, []*acl.Token{c.Token}) {
			return false
		}
		if m.boot == nil {
			m.boot = &acl.Bootstrap{CreateIndex: index}
		}
		m.boot = &acl.Bootstrap{CreateIndex: m.boot.CreateIndex, ModifyIndex: index}
	case *command.UpsertACLTokens:
		return m.store(index, c.Tokens)
	case *command.DeleteACLTokens:
		return remove(m.tokens, c.AccessorIDs)
	case *command.UpsertACLPolicies:
		p := c.Policies[0].Copy()
		p.CreateIndex, p.ModifyIndex = index, index
		if old := m.policies[p.Name]; old != nil {
			p.CreateIndex = old.CreateIndex
		}
		m.policies[p.Name] = p
	case *command.DeleteACLPolicies:
		return remove(m.policies, c.Names)
	case *command.UpsertACLRoles:
		return m.role(index, c.Roles[0])
	case *command.DeleteACLRoles:
		return remove(m.roles, c.IDs)
	case *command.PutOneTimeToken:
		if m.tokens[c.Token.AccessorID] == nil {
			return false
		}
		for accessor, o := range m.once {
			if o.OneTimeSecretID == c.Token.OneTimeSecretID && accessor != c.Token.AccessorID {
				return false
			}
		}
		o := *c.Token
		o.CreateIndex, o.ModifyIndex = index, index
		m.once[o.AccessorID] = &o
	case *command.ExchangeOneTimeToken:
		return m.exchange(c.Secret, time.Unix(0, c.Time))
	case *command.ExpireACLTokens:
		m.expire(c.AccessorIDs, time.Unix(0, c.Time))
	}
	return true
}

func (m *aclModel) expire(accessors []string, now time.Time) {
	for _, a := range accessors {
		if k := m.tokens[a]; k != nil && k.ExpirationTime != nil && !now.Before(*k.ExpirationTime) {
			delete(m.tokens, a)
		}
	}
	maps.DeleteFunc(m.once, func(_ string, o *acl.OneTimeToken) bool { return !now.Before(o.ExpiresAt) })
}

// compare fails where the state is not the model's.
func (m *aclModel) compare(t require.TestingT, s *store.Snapshot) {
	require.Equal(t, m.boot, s.ACLBootstrap())
	tokens, policies, roles, once := map[string]*acl.Token{}, map[string]*acl.Policy{}, map[string]*acl.Role{}, map[string]*acl.OneTimeToken{}
	for k := range s.ACLTokens("") {
		tokens[k.AccessorID] = k
		require.Same(t, k, s.ACLTokenBySecret(k.SecretID))
	}
	for p := range s.ACLPolicies("") {
		policies[p.Name] = p
		require.Contains(t, slices.Collect(s.ACLPoliciesOfJob(p.JobACL.Namespace, p.JobACL.JobID)), p)
	}
	for r := range s.ACLRoles("") {
		roles[r.ID] = r
		require.Same(t, r, s.ACLRoleByName(r.Name))
	}
	for o := range s.OneTimeTokens() {
		once[o.AccessorID] = o
		require.Same(t, o, s.OneTimeTokenBySecret(o.OneTimeSecretID))
	}
	require.Equal(t, m.tokens, tokens)
	require.Equal(t, m.policies, policies)
	require.Equal(t, m.roles, roles)
	require.Equal(t, m.once, once)
}

// TestACLAgainstTheModel: random histories of access control give what maps give, also over a snapshot.
func TestACLAgainstTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := setup(t)
		m := &aclModel{
			tokens: map[string]*acl.Token{}, policies: map[string]*acl.Policy{}, roles: map[string]*acl.Role{}, once: map[string]*acl.OneTimeToken{},
		}
		for range rapid.IntRange(1, 60).Draw(rt, "entries") {
			c := draw{rt}.acl()
			_, err := b.try(c)
			require.Equal(rt, m.apply(b.index, c), err == nil, "%s: %v", c.Kind(), err)
			maps.DeleteFunc(m.once, func(accessor string, _ *acl.OneTimeToken) bool { return m.tokens[accessor] == nil })
		}
		m.compare(rt, b.now())
		m.compare(rt, restore(t, b.f).Store().Snapshot())
	})
}
