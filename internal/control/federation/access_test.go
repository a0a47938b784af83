package federation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
)

// shared is what a region has of what regions share, and says of it, without indexes; links to what is gone are left out.
func (r *region) shared() (out []string) {
	o := r.Objects()
	a := linked(o.Access)
	for _, p := range a.Policies.Have {
		out = append(out, fmt.Sprint("policy ", p.Name, p.Rules, p.JobACL))
	}
	for _, role := range a.Roles.Have {
		out = append(out, fmt.Sprint("role ", role.ID, role.Name))
		for _, p := range role.Policies {
			out = append(out, " "+p.Name)
		}
	}
	for _, t := range a.Tokens.Have {
		out = append(out, fmt.Sprint("token ", t.AccessorID, string(t.SecretID), t.Name, t.Type, t.Policies, t.CreateTime.UnixNano()))
		if t.ExpirationTime != nil {
			out = append(out, t.ExpirationTime.String())
		}
		for _, l := range t.Roles {
			out = append(out, " "+l.ID)
		}
	}
	for _, m := range a.Methods.Have {
		out = append(out, fmt.Sprint("method ", m.Name, m.Default, m.Config.JWKSURL, m.ModifyTime.UnixNano()))
	}
	for _, b := range a.Bindings.Have {
		out = append(out, fmt.Sprint("binding ", b.ID, b.AuthMethod, b.BindName))
	}
	for _, rule := range o.Rules.Have {
		out = append(out, fmt.Sprint("rule ", rule.Name, rule.When, rule.Max, len(rule.Namespaces)))
	}
	return append(out, o.names()...)
}

// locals are the accessors of the tokens of this region alone.
func (r *region) locals() (out []string) {
	for t := range r.Snapshot().ACLTokens("") {
		if !t.Global {
			out = append(out, t.AccessorID)
		}
	}
	return out
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// write is a random write. Those that the state refuses are part of a history, too.
func write(t *rapid.T, at int64) command.Command {
	name := func(label string) string { return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, label) }
	some := func(label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 3, rapid.ID[string]).Draw(t, label)
	}
	now := start.Add(time.Duration(at))
	switch rapid.IntRange(0, 13).Draw(t, "what") {
	case 0, 1:
		p := &acl.Policy{Name: name("policy"), Rules: name("rules")}
		if rapid.Bool().Draw(t, "bound") {
			p.JobACL = &acl.JobACL{Namespace: "default", JobID: name("job")}
		}
		p.SetHash()
		return &command.UpsertACLPolicies{Policies: []*acl.Policy{p}}
	case 2:
		return &command.DeleteACLPolicies{Names: []string{name("policy")}}
	case 3:
		r := &acl.Role{ID: name("id"), Name: name("name")}
		for _, p := range some("policies") {
			r.Policies = append(r.Policies, &acl.RolePolicy{Name: p})
		}
		r.SetHash()
		return &command.UpsertACLRoles{Roles: []*acl.Role{r}}
	case 4:
		return &command.DeleteACLRoles{IDs: []string{name("id")}}
	case 5, 6:
		k := &acl.Token{
			AccessorID: name("accessor"), SecretID: acl.Secret(name("secret")), Name: name("name"), Type: acl.ClientToken,
			Policies: some("policies"), Global: rapid.Bool().Draw(t, "global"), CreateTime: now,
		}
		for _, r := range some("roles") {
			k.Roles = append(k.Roles, &acl.TokenRole{ID: r})
		}
		if rapid.Bool().Draw(t, "ends") {
			k.ExpirationTime = new(now.Add(time.Hour))
		}
		k.SetHash()
		return &command.UpsertACLTokens{Tokens: []*acl.Token{k}}
	case 7:
		return &command.DeleteACLTokens{AccessorIDs: []string{name("accessor")}}
	case 8:
		return &command.UpsertAuthMethods{Methods: []*acl.AuthMethod{{
			Name: name("method"), Type: acl.MethodJWT, Default: rapid.Bool().Draw(t, "default"), ModifyTime: now,
			Config: &acl.AuthMethodConfig{JWKSURL: name("url")},
		}}}
	case 9:
		return &command.DeleteAuthMethods{Names: []string{name("method")}}
	case 10:
		return &command.UpsertBindingRules{Rules: []*acl.BindingRule{{ID: name("id"), AuthMethod: name("method"), BindName: name("name")}}}
	case 11:
		return &command.DeleteBindingRules{IDs: []string{name("id")}}
	case 12:
		return &command.UpsertAdmissionRules{Rules: []*drover.AdmissionRule{{
			Name: name("rule"), When: name("when"), Namespaces: some("namespaces"), Max: map[string]int64{name("field"): at},
		}}}
	}
	return &command.DeleteAdmissionRules{Names: []string{name("rule")}}
}

// Something is written in the authoritative region, whatever it is, whenever the link is down or the state there is another one.
// A region that hears of it becomes the same, has nothing that was deleted, and keeps the tokens that are its own.
func TestARegionConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		there, here := newRegion(t, "there"), newRegion(t, "here")
		here.hasty = true
		ctx, down := context.Background(), false
		f := &follower{Deps: here.follow(there, func() bool { return down })}
		for i, n := int64(0), rapid.Int64Range(1, 60).Draw(t, "steps"); i < n; i++ {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				down = !down
			case 1:
				there.epoch += "1" // another leader, or a restored state
			case 2, 3:
				_ = f.follow(ctx)
			case 4:
				k := &acl.Token{AccessorID: "local" + fmt.Sprint(i), SecretID: acl.Secret(fmt.Sprint("local", i)), Type: acl.ManagementToken}
				here.write(&command.UpsertACLTokens{Tokens: []*acl.Token{k}})
			default:
				_ = there.Propose(ctx, write(t, i)) // what it refuses changes nothing
			}
		}
		down = false
		before := here.locals()
		for range 3 { // an object that had to make room for another one
			require.NoError(t, f.follow(ctx))
		}
		require.Equal(t, there.shared(), here.shared())
		require.Equal(t, before, here.locals())
		require.Empty(t, Differences(here.Objects(), there.Objects()), "nothing more is written")
	})
}

// Names of roles that were exchanged, and the default method of a type that is another one now, come over in one pull.
func TestExchangedNamesComeOver(t *testing.T) {
	t.Parallel()
	there, here := newRegion(t, "there"), newRegion(t, "here")
	role := func(id, name string) *command.UpsertACLRoles {
		r := &acl.Role{ID: id, Name: name}
		r.SetHash()
		return &command.UpsertACLRoles{Roles: []*acl.Role{r}}
	}
	method := func(name string, def bool) *command.UpsertAuthMethods {
		return &command.UpsertAuthMethods{Methods: []*acl.AuthMethod{{
			Name: name, Type: acl.MethodJWT, Default: def, Config: &acl.AuthMethodConfig{},
		}}}
	}
	f := &follower{Deps: here.follow(there, func() bool { return false })}
	there.write(role("1", "a"), role("2", "b"), method("x", true), method("y", false))
	require.NoError(t, f.follow(t.Context()))
	there.write(role("1", "c"), role("2", "a"), role("1", "b"), method("x", false), method("y", true))
	require.NoError(t, f.follow(t.Context()))
	require.Equal(t, there.shared(), here.shared())
	require.Equal(t, "2", here.Snapshot().ACLRoleByName("a").ID)
}

// An answer has what changed alone, and all of it after the state became another one. A region that tells nothing of access control
// takes none away.
func TestAnAnswerHasWhatChanged(t *testing.T) {
	t.Parallel()
	there, here := newRegion(t, "there"), newRegion(t, "here")
	for i := range 500 {
		k := &acl.Token{AccessorID: fmt.Sprintf("%03d", i), SecretID: acl.Secret(fmt.Sprint(i)), Type: acl.ManagementToken, Global: true}
		k.SetHash()
		there.write(&command.UpsertACLTokens{Tokens: []*acl.Token{k}})
	}
	f := &follower{Deps: here.follow(there, func() bool { return false })}
	require.NoError(t, f.follow(t.Context()))
	require.Equal(t, there.shared(), here.shared())
	there.write(&command.DeleteACLTokens{AccessorIDs: []string{"007", "008"}})
	next := there.read(f.there.Index)
	require.Empty(t, next.Access.Tokens.Have)
	require.Len(t, next.Access.Tokens.Keys, 498)
	require.True(t, next.Namespaces.Same)
	require.NoError(t, f.follow(t.Context()))
	require.Equal(t, there.shared(), here.shared())

	untold := there.Objects()
	untold.Access = nil
	require.Empty(t, Differences(here.Objects(), untold))
}

func TestAnAnswerIsForOneQuestion(t *testing.T) {
	t.Parallel()
	sealed, err := Seal("token", "nonce", "salt", []byte("text"))
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "text")
	plain, err := Open("token", "nonce", Answered{Salt: "salt", Sealed: sealed})
	require.NoError(t, err)
	require.Equal(t, "text", string(plain))
	changed := slices.Clone(sealed)
	changed[0] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another token":    func() ([]byte, error) { return Open("other", "nonce", Answered{Salt: "salt", Sealed: sealed}) },
		"another question": func() ([]byte, error) { return Open("token", "other", Answered{Salt: "salt", Sealed: sealed}) },
		"another salt":     func() ([]byte, error) { return Open("token", "nonce", Answered{Salt: "other", Sealed: sealed}) },
		"changed":          func() ([]byte, error) { return Open("token", "nonce", Answered{Salt: "salt", Sealed: changed}) },
		"nothing":          func() ([]byte, error) { return Open("token", "nonce", Answered{}) },
	} {
		_, err := open()
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), name)
	}
}
