package access

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/rights"
)

// TestBootstrap: once, with a given or a random secret; again with the index that the refusal names, left in a file that works once.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.Bootstrap(t.Context(), "badtoken")
	fails(t, err, drover.Invalid, "invalid acl token")
	const secret = "2b778dd9-f5f1-6f29-b4b4-9a5fa948757a"
	made, index, err := b.Bootstrap(t.Context(), secret)
	require.NoError(t, err)
	require.Equal(t, &acl.Token{
		AccessorID: made.AccessorID, SecretID: secret, Name: "Bootstrap Token", Type: acl.ManagementToken, Global: true,
		CreateTime: b.clock.Now().UTC(), Hash: made.Hash, CreateIndex: index, ModifyIndex: index,
	}, made)
	_, _, err = b.Bootstrap(t.Context(), "")
	fails(t, err, drover.Invalid, fmt.Sprintf("ACL bootstrap already done (reset index: %d)", index))

	write := func(text string) { require.NoError(t, os.WriteFile(string(b.reset), []byte(text), 0o600)) }
	write("seven")
	_, _, err = b.Bootstrap(t.Context(), "")
	fails(t, err, drover.Invalid, `"seven" is no reset index`)
	write("99")
	_, _, err = b.Bootstrap(t.Context(), "")
	fails(t, err, drover.Invalid, fmt.Sprintf("Invalid bootstrap reset index (specified 99, reset index: %d)", index))
	write(fmt.Sprintln(index))
	again, _, err := b.Bootstrap(t.Context(), "")
	require.NoError(t, err)
	require.NotEqual(t, made.SecretID, again.SecretID)
	require.NoFileExists(t, string(b.reset))
	_, _, err = b.Bootstrap(t.Context(), "")
	fails(t, err, drover.Invalid, "ACL bootstrap already done")
	require.True(t, b.who(secret).Management(), "the first one stays until it is deleted")
	require.NoError(t, os.Mkdir(string(b.reset), 0o700))
	_, _, err = b.Bootstrap(t.Context(), "")
	fails(t, err, drover.Internal, "reading the ACL reset index")
}

// TestTokens is the order of Nomad's own client tests: create, update, refuse an end, link a role, read, delete.
func TestTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := b.token(&acl.Token{Name: "foo", Type: acl.ClientToken, Policies: []string{"foo1", "foo1"}})
	require.Equal(t, []string{"foo1"}, k.Policies)
	next := k.Copy()
	next.Name = "other"
	got, _, err := b.UpdateToken(t.Context(), b.root, next)
	require.NoError(t, err)
	require.Equal(t, "other", got.Name)
	require.NotEqual(t, k.Hash, got.Hash)
	next.ExpirationTTL = acl.TTL(10 * time.Minute)
	_, _, err = b.UpdateToken(t.Context(), b.root, next)
	fails(t, err, drover.Invalid, "cannot update expiration TTL")

	b.policy("p", `namespace "default" { policy = "read" }`)
	r := b.role("dev", "p")
	_, _, err = b.UpdateToken(t.Context(), b.root, &acl.Token{
		AccessorID: k.AccessorID, Type: acl.ClientToken, Roles: []*acl.TokenRole{{Name: "none"}},
	})
	fails(t, err, drover.Invalid, "cannot find role none")
	got, _, err = b.UpdateToken(t.Context(), b.root, &acl.Token{
		AccessorID: k.AccessorID, Type: acl.ClientToken, Policies: []string{"foo1"}, Roles: []*acl.TokenRole{{Name: "dev"}, {ID: r.ID}},
	})
	require.NoError(t, err, "what cannot change may be left out")
	require.Equal(t, []*acl.TokenRole{{ID: r.ID, Name: "dev"}}, got.Roles)
	require.Equal(t, k.SecretID, got.SecretID)

	r = r.Copy()
	r.Name = "devs"
	_, _, err = b.PutRole(t.Context(), b.root, r)
	require.NoError(t, err)
	read, err := b.Token(b.root, k.AccessorID)
	require.NoError(t, err)
	require.Equal(t, "devs", read.Roles[0].Name, "links have the present name")
	_, err = b.DeleteRoles(t.Context(), b.root, r.ID)
	require.NoError(t, err)
	read, err = b.Token(b.root, k.AccessorID)
	require.NoError(t, err)
	require.Empty(t, read.Roles)

	ends := b.token(&acl.Token{Type: acl.ClientToken, Policies: []string{"p"}, ExpirationTTL: acl.TTL(time.Hour), Global: true})
	require.Equal(t, b.clock.Now().Add(time.Hour).UTC(), *ends.ExpirationTime)
	kept, _, err := b.UpdateToken(t.Context(), b.root, &acl.Token{
		AccessorID: ends.AccessorID, Type: acl.ClientToken, Policies: []string{"q"}, Global: true,
	})
	require.NoError(t, err)
	require.Equal(t, ends.ExpirationTime, kept.ExpirationTime)
	_, _, err = b.UpdateToken(t.Context(), b.root, &acl.Token{
		AccessorID: ends.AccessorID, Type: acl.ClientToken, Policies: []string{"q"}, Global: true, ExpirationTime: ends.ExpirationTime,
	})
	require.NoError(t, err, "the end as it was read, without the TTL that it was made of")
	kept, err = b.Token(b.root, ends.AccessorID)
	require.NoError(t, err)
	require.Len(t, b.Tokens(b.root, "", false), 2)
	require.Equal(t, []*acl.TokenStub{kept.Stub()}, b.Tokens(b.root, ends.AccessorID[:8], true))

	_, err = b.DeleteTokens(t.Context(), b.root, k.AccessorID, "unknown")
	fails(t, err, drover.NotFound, "ACL token not found: unknown")
	_, err = b.DeleteTokens(t.Context(), b.root, k.AccessorID)
	require.NoError(t, err)
	_, err = b.Token(b.root, k.AccessorID)
	fails(t, err, drover.NotFound, "ACL token not found")
}

// TestBadTokens: what is wrong is named.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const accessor, secret = "b306571d-a3fa-42d2-ac5b-bbe49d8c3c7f", "c28ba0f6-ab8d-4e4d-b9f0-7f9f5d1c2e3a"
	for want, k := range map[string]*acl.Token{
		"AccessorID: a new token gets one":                 {AccessorID: accessor},
		"SecretID: a new token gets one":                   {SecretID: secret},
		"ExpirationTTL: give it or ExpirationTime":         {ExpirationTTL: 1, ExpirationTime: new(b.clock.Now())},
		"Type: token type must be client or management":    {},
		"expiration time cannot be more than 24h0m0s":      {Type: acl.ManagementToken, ExpirationTTL: acl.TTL(48 * time.Hour)},
		"client token missing policies or roles":           {Type: acl.ClientToken},
		"cannot find role 1":                               {Type: acl.ClientToken, Roles: []*acl.TokenRole{{ID: "1"}}},
		"Roles: a link needs the ID or the Name of a role": {Type: acl.ClientToken, Roles: []*acl.TokenRole{{}}},
	} {
		_, _, err := b.CreateToken(t.Context(), b.root, k)
		fails(t, err, drover.Invalid, want)
	}
	for want, k := range map[string]*acl.Token{
		"AccessorID: it is a UUID":        {AccessorID: "x"},
		"SecretID: it is a UUID":          {AccessorID: accessor, SecretID: "f5b20e34-9g6c-53d2-b8e4-7f1g2c3d5b6e"},
		"cannot upload management tokens": {AccessorID: accessor, SecretID: secret, Type: acl.ManagementToken},
	} {
		_, _, err := b.UpdateToken(t.Context(), b.root, k)
		fails(t, err, drover.Invalid, want)
	}
	upload := &acl.Token{AccessorID: accessor, Type: acl.ClientToken, Policies: []string{"p"}}
	_, _, err := b.UpdateToken(t.Context(), b.root, upload)
	fails(t, err, drover.NotFound, "cannot find token "+accessor)
	upload.SecretID = secret
	made, _, err := b.UpdateToken(t.Context(), b.root, upload)
	require.NoError(t, err)
	require.Equal(t, []any{accessor, acl.Secret(secret)}, []any{made.AccessorID, made.SecretID})
	upload = upload.Copy()
	upload.AccessorID = b.deps.IDs.New()
	_, _, err = b.UpdateToken(t.Context(), b.root, upload)
	fails(t, err, drover.Conflict, "its secret is in use")
	upload.AccessorID, upload.SecretID = accessor, acl.Secret(b.deps.IDs.New())
	_, _, err = b.UpdateToken(t.Context(), b.root, upload)
	fails(t, err, drover.Invalid, "cannot update the secret")
}

// TestCloneTokens: the rights of the one, and a secret and a life of its own.
func TestCloneTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := b.token(&acl.Token{Name: "a", Type: acl.ClientToken, Policies: []string{"p"}, ExpirationTTL: acl.TTL(time.Hour), Global: true})
	b.clock.add(30 * time.Minute)
	c, _, err := b.CloneToken(t.Context(), b.root, k.AccessorID, "b")
	require.NoError(t, err)
	require.Equal(t, []any{"b", k.Type, k.Policies, true}, []any{c.Name, c.Type, c.Policies, c.Global})
	require.NotEqual(t, k.SecretID, c.SecretID)
	require.Equal(t, k.ExpirationTime.Add(30*time.Minute), *c.ExpirationTime)
	_, _, err = b.CloneToken(t.Context(), b.root, "unknown", "b")
	fails(t, err, drover.NotFound, "ACL token not found")
	_, _, err = b.CloneToken(t.Context(), b.who(k.SecretID), k.AccessorID, "b")
	fails(t, err, drover.Forbidden, "Permission denied")
}

// TestWhoMayWhat: each use case with anonymous, with a client's token and with nobody. What is not the caller's cannot be told from what is
// not there.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.policy("mine", `node { policy = "read" }`)
	b.policy("by-role", `agent { policy = "read" }`)
	b.policy("other", `node { policy = "write" }`)
	r, foreign := b.role("dev", "by-role"), b.role("ops", "other")
	k := b.token(&acl.Token{Type: acl.ClientToken, Policies: []string{"mine"}, Roles: []*acl.TokenRole{{ID: r.ID}}})
	o := b.client("other")
	me := b.who(k.SecretID)
	for _, who := range []*rights.Caller{nil, b.who(""), me} {
		ctx := t.Context()
		for name, use := range map[string]func() error{
			"CreateToken":    func() error { _, _, err := b.CreateToken(ctx, who, &acl.Token{}); return err },
			"UpdateToken":    func() error { _, _, err := b.UpdateToken(ctx, who, k); return err },
			"CloneToken":     func() error { _, _, err := b.CloneToken(ctx, who, o.AccessorID, "x"); return err },
			"DeleteTokens":   func() error { _, err := b.DeleteTokens(ctx, who, k.AccessorID); return err },
			"Token":          func() error { _, err := b.Token(who, o.AccessorID); return err },
			"Token, none":    func() error { _, err := b.Token(who, "none"); return err },
			"Token, empty":   func() error { _, err := b.Token(who, ""); return err },
			"PutPolicy":      func() error { _, err := b.PutPolicy(ctx, who, &acl.Policy{}); return err },
			"DeletePolicies": func() error { _, err := b.DeletePolicies(ctx, who, "mine"); return err },
			"Policy":         func() error { _, err := b.Policy(who, "other"); return err },
			"Policy, none":   func() error { _, err := b.Policy(who, "none"); return err },
			"PutRole":        func() error { _, _, err := b.PutRole(ctx, who, r); return err },
			"DeleteRoles":    func() error { _, err := b.DeleteRoles(ctx, who, r.ID); return err },
			"Role":           func() error { _, err := b.Role(who, foreign.ID); return err },
			"Role, none":     func() error { _, err := b.Role(who, "none"); return err },
			"RoleByName":     func() error { _, err := b.RoleByName(who, "ops"); return err },
		} {
			fails(t, use(), drover.Forbidden, "Permission denied")
			require.EqualError(t, use(), "Permission denied", name)
		}
		require.Empty(t, b.Tokens(who, "", false))
		if who != me {
			_, err := b.Self(who)
			require.EqualError(t, err, "Permission denied")
			_, _, err = b.MakeOneTime(t.Context(), who)
			require.EqualError(t, err, "Permission denied")
			require.Empty(t, b.Policies(who, ""))
			require.Empty(t, b.Roles(who, ""))
			require.Empty(t, b.OwnPolicies(who))
		}
	}
	self, err := b.Self(me)
	require.NoError(t, err)
	require.Equal(t, k, self)
	own, err := b.Token(me, k.AccessorID)
	require.NoError(t, err)
	require.Equal(t, k, own)
	names := func(of []*acl.PolicyStub) (out []string) {
		for _, p := range of {
			out = append(out, p.Name)
		}
		return out
	}
	require.Equal(t, []string{"by-role", "mine"}, names(b.Policies(me, "")))
	require.Equal(t, []string{"mine"}, names(b.Policies(me, "m")))
	require.Equal(t, []string{"by-role", "mine", "other"}, names(b.Policies(b.root, "")))
	require.Len(t, b.OwnPolicies(me), 2)
	p, err := b.Policy(me, "by-role")
	require.NoError(t, err)
	require.Equal(t, `agent { policy = "read" }`, p.Rules)
	require.Equal(t, []*acl.RoleStub{r.Stub()}, b.Roles(me, ""))
	require.Len(t, b.Roles(b.root, ""), 2)
	for _, read := range []func() (*acl.Role, error){
		func() (*acl.Role, error) { return b.Role(me, r.ID) }, func() (*acl.Role, error) { return b.RoleByName(me, "dev") },
		func() (*acl.Role, error) { return b.RoleByName(b.root, "dev") },
	} {
		got, err := read()
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
}

// TestPoliciesAndRoles: what managers get told.
func TestPoliciesAndRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(p *acl.Policy) error { _, err := b.PutPolicy(t.Context(), b.root, p); return err }
	fails(t, put(nil), drover.Invalid, "missing policy")
	fails(t, put(&acl.Policy{Name: "a b", Rules: "node { policy = \"read\" }"}), drover.Invalid, `Name: invalid name "a b"`)
	fails(t, put(&acl.Policy{Name: "p", Rules: "node {\n  polcy = \"read\"\n}"}), drover.Invalid, "line 2, column 3: unknown key")
	require.NoError(t, put(&acl.Policy{Name: "p", Rules: `{"node": {"policy": "read"}}`, JobACL: &acl.JobACL{JobID: "j"}}))
	p, err := b.Policy(b.root, "p")
	require.NoError(t, err)
	require.Equal(t, "default", p.JobACL.Namespace)
	first := p.CreateIndex
	require.NoError(t, put(&acl.Policy{Name: "p", Rules: `node { policy = "write" }`}))
	p, err = b.Policy(b.root, "p")
	require.NoError(t, err)
	require.Equal(t, first, p.CreateIndex)
	require.Greater(t, p.ModifyIndex, first)

	role := func(r *acl.Role) error { _, _, err := b.PutRole(t.Context(), b.root, r); return err }
	link := []*acl.RolePolicy{{Name: "p"}}
	fails(t, role(nil), drover.Invalid, "missing role")
	fails(t, role(&acl.Role{Name: "r"}), drover.Invalid, "at least one policy")
	fails(t, role(&acl.Role{Name: "r", Policies: []*acl.RolePolicy{{Name: "q"}}}), drover.Invalid, "cannot find policy q")
	fails(t, role(&acl.Role{ID: "x", Name: "r", Policies: link}), drover.Invalid, "ID: it is a UUID")
	fails(t, role(&acl.Role{ID: b.deps.IDs.New(), Name: "r", Policies: link}), drover.NotFound, "cannot find role")
	require.NoError(t, role(&acl.Role{Name: "r", Policies: link}))
	fails(t, role(&acl.Role{Name: "r", Policies: link}), drover.Invalid, "role with name r already exists")
	_, err = b.DeleteRoles(t.Context(), b.root, "none")
	fails(t, err, drover.NotFound, "ACL role not found: none")
	for _, read := range []func() error{
		func() error { _, err := b.Role(b.root, "none"); return err }, func() error { _, err := b.RoleByName(b.root, "none"); return err },
	} {
		fails(t, read(), drover.NotFound, "ACL role not found")
	}
	_, err = b.DeletePolicies(t.Context(), b.root, "p")
	require.NoError(t, err)
	_, err = b.Policy(b.root, "p")
	fails(t, err, drover.NotFound, "ACL policy not found")
}

// TestOneTimeTokens: exchanged once, within ten minutes, by who is handed the secret.
func TestOneTimeTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := b.client("p")
	_, _, err := b.MakeOneTime(t.Context(), b.root)
	fails(t, err, drover.Forbidden, "Permission denied")
	once, index, err := b.MakeOneTime(t.Context(), b.who(k.SecretID))
	require.NoError(t, err)
	require.Equal(t, b.clock.Now().Add(10*time.Minute).UTC(), once.ExpiresAt)
	require.Equal(t, index, once.ModifyIndex)
	got, _, err := b.Exchange(t.Context(), once.OneTimeSecretID)
	require.NoError(t, err)
	require.Equal(t, k, got)
	_, _, err = b.Exchange(t.Context(), once.OneTimeSecretID)
	fails(t, err, drover.Forbidden, "Permission denied")
	once, _, err = b.MakeOneTime(t.Context(), b.who(k.SecretID))
	require.NoError(t, err)
	b.clock.add(10 * time.Minute)
	_, _, err = b.Exchange(t.Context(), once.OneTimeSecretID)
	fails(t, err, drover.Forbidden, "Permission denied")
}

// TestCollect: what expired stays for an hour, so that a clock that jumped takes nothing away; nothing is written where nothing is due.
func TestCollect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	collect := func() int {
		n, err := b.Collect(t.Context())
		require.NoError(t, err)
		return n
	}
	stays := b.client("p")
	ends := b.token(&acl.Token{Type: acl.ClientToken, Policies: []string{"p"}, ExpirationTTL: acl.TTL(time.Minute)})
	later := b.token(&acl.Token{Type: acl.ClientToken, Policies: []string{"p"}, ExpirationTTL: acl.TTL(time.Hour)})
	_, _, err := b.MakeOneTime(t.Context(), b.who(stays.SecretID))
	require.NoError(t, err)
	before := b.log.index
	b.clock.add(time.Minute + CollectAfter - 1)
	require.Zero(t, collect())
	require.Equal(t, before, b.log.index)
	b.clock.add(1)
	require.Equal(t, 1, collect())
	s := b.log.fsm.Store().Snapshot()
	require.Nil(t, s.ACLToken(ends.AccessorID))
	require.NotNil(t, s.ACLToken(later.AccessorID))
	require.NotNil(t, s.OneTimeToken(stays.AccessorID))
	b.clock.add(9 * time.Minute)
	require.Equal(t, 1, collect(), "the one-time token")
	b.clock.add(time.Hour)
	require.Equal(t, 1, collect())
	require.Zero(t, collect())
	require.NotNil(t, b.log.fsm.Store().Snapshot().ACLToken(stays.AccessorID))

	b.Access.deps.CollectAfter = time.Minute // server.acl_token_gc_threshold
	b.token(&acl.Token{Type: acl.ClientToken, Policies: []string{"p"}, ExpirationTTL: acl.TTL(time.Minute)})
	b.clock.add(2*time.Minute - 1)
	require.Zero(t, collect())
	b.clock.add(1)
	require.Equal(t, 1, collect())
}

// TestErrorsHaveNoSecrets: whatever is refused, its words do not repeat what was secret.
func TestErrorsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := b.client("p")
	bad := k.Copy()
	bad.SecretID = "hidden"
	var words []string
	note := func(err error) {
		require.Error(t, err)
		words = append(words, err.Error(), fmt.Sprintf("%+v %#v", err, err))
	}
	_, err := b.Resolve("hidden")
	note(err)
	_, _, err = b.UpdateToken(t.Context(), b.root, bad)
	note(err)
	_, _, err = b.CreateToken(t.Context(), b.root, bad)
	note(err)
	_, _, err = b.Bootstrap(t.Context(), "hidden")
	note(err)
	_, _, err = b.Exchange(t.Context(), "hidden")
	note(err)
	who := b.who(k.SecretID)
	words = append(words, fmt.Sprintf("%v %+v %s", who, who, who))
	all := strings.Join(words, "\n")
	require.NotContains(t, all, "hidden")
	require.NotContains(t, all, string(k.SecretID))
	require.Contains(t, all, k.AccessorID)
	text, err := json.Marshal(b.root.Token)
	require.NoError(t, err)
	require.NotContains(t, string(text), apiToken)
}

// TestWhatIsAnotherRegionsIsNotWritten: a region that follows another one makes its local tokens only.
func TestWhatIsAnotherRegionsIsNotWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	global := b.token(&acl.Token{Type: acl.ManagementToken, Global: true})
	b.policy("p", `agent { policy = "read" }`)
	r := b.role("r", "p")
	b.deps.Follows = "far"
	ctx := t.Context()
	for what, use := range map[string]func() error{
		"policies are":         func() error { _, err := b.PutPolicy(ctx, b.root, &acl.Policy{Name: "q"}); return err },
		"policies are those":   func() error { _, err := b.DeletePolicies(ctx, b.root, "p"); return err },
		"roles are":            func() error { _, _, err := b.PutRole(ctx, b.root, r); return err },
		"roles are those":      func() error { _, err := b.DeleteRoles(ctx, b.root, r.ID); return err },
		"global tokens are":    func() error { _, err := b.DeleteTokens(ctx, b.root, global.AccessorID); return err },
		"bootstrap tokens are": func() error { _, _, err := b.Bootstrap(ctx, ""); return err },
		"global tokens are those": func() error {
			_, _, err := b.CreateToken(ctx, b.root, &acl.Token{Type: acl.ManagementToken, Global: true})
			return err
		},
		"global tokens are those of": func() error {
			_, _, err := b.UpdateToken(ctx, b.root, &acl.Token{AccessorID: global.AccessorID, Type: acl.ManagementToken})
			return err
		},
	} {
		fails(t, use(), drover.Invalid, what)
		fails(t, use(), drover.Invalid, `of region "far" here: write them there`)
	}
	local := b.client("p")
	_, err := b.DeleteTokens(ctx, b.root, local.AccessorID)
	require.NoError(t, err)
	_, err = b.PutPolicy(ctx, b.who(""), &acl.Policy{Name: "q"})
	require.EqualError(t, err, "Permission denied", "strangers are not told of it")
}

// TestTheConfigurationsTokenIsNoneOfTheState: its holder is told what it is.
func TestTheConfigurationsTokenIsNoneOfTheState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	self, err := b.Self(b.root)
	require.NoError(t, err)
	require.Equal(t, "api_token", self.AccessorID)
	require.Empty(t, self.SecretID)
	_, _, err = b.MakeOneTime(t.Context(), b.root)
	require.EqualError(t, err, "Permission denied")
}
