package logins

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// world is a store to which commands are applied.
type world struct {
	t     *testing.T
	store *store.Store
	index uint64
}

func (w *world) apply(c command.Command) (any, []Change, error) {
	w.t.Helper()
	w.index++
	txn := w.store.Begin(w.index)
	result, changes, known, err := Apply(txn, w.index, c)
	require.True(w.t, known)
	txn.Commit()
	return result, changes, err
}

func method(name, kind string, isDefault bool) *acl.AuthMethod {
	return &acl.AuthMethod{Name: name, Type: kind, Default: isDefault, Config: &acl.AuthMethodConfig{OIDCClientSecret: "s"}}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	w := &world{t: t, store: store.New()}
	put := func(methods ...*acl.AuthMethod) error {
		_, _, err := w.apply(&command.UpsertAuthMethods{Methods: methods})
		return err
	}
	stored, changes, err := w.apply(&command.UpsertAuthMethods{Methods: []*acl.AuthMethod{method("a", acl.MethodJWT, true)}})
	require.NoError(t, err)
	require.Equal(t, w.store.Snapshot().AuthMethod("a"), stored.([]*acl.AuthMethod)[0])
	require.Equal(t, acl.Secret("redacted"), changes[0].Now.(*acl.AuthMethod).Config.OIDCClientSecret)
	require.Equal(t, acl.Secret("s"), w.store.Snapshot().AuthMethod("a").Config.OIDCClientSecret)

	require.NoError(t, put(method("o", acl.MethodOIDC, true)), "one of each type")
	err = put(method("c", acl.MethodJWT, false), method("b", acl.MethodJWT, true))
	require.EqualError(t, err, "default ACL auth method for type JWT already exists: a")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.Nil(t, w.store.Snapshot().AuthMethod("c"), "all or none")
	require.Error(t, put(method("b", acl.MethodOIDC, true), method("a", acl.MethodOIDC, true)))
	require.NoError(t, put(method("a", acl.MethodJWT, false), method("b", acl.MethodJWT, true)), "the default moves")
	a := w.store.Snapshot().AuthMethod("a")
	require.Equal(t, uint64(1), a.CreateIndex)
	require.Equal(t, w.index, a.ModifyIndex)
	for _, bad := range [][]*acl.AuthMethod{{nil}, {{}}, {method("x", "JWT", false), method("x", "JWT", false)}} {
		require.Equal(t, drover.Invalid, drover.CodeOf(put(bad...)))
	}

	_, changes, err = w.apply(&command.DeleteAuthMethods{Names: []string{"a", "none"}})
	require.EqualError(t, err, "ACL auth method not found: none")
	require.Empty(t, changes)
	_, changes, err = w.apply(&command.DeleteAuthMethods{Names: []string{"a", "a"}})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.True(t, changes[0].Gone)
	require.Nil(t, w.store.Snapshot().AuthMethod("a"))
}

func TestRules(t *testing.T) {
	t.Parallel()
	w := &world{t: t, store: store.New()}
	rule := &acl.BindingRule{ID: "r", AuthMethod: "a", BindType: acl.BindManagement}
	_, _, err := w.apply(&command.UpsertBindingRules{Rules: []*acl.BindingRule{rule}})
	require.EqualError(t, err, "ACL auth method a not found")
	two := []*acl.AuthMethod{method("a", acl.MethodJWT, true), method("ab", acl.MethodJWT, false)}
	_, _, err = w.apply(&command.UpsertAuthMethods{Methods: two})
	require.NoError(t, err)
	other := &acl.BindingRule{ID: "s", AuthMethod: "ab", BindType: acl.BindManagement}
	_, changes, err := w.apply(&command.UpsertBindingRules{Rules: []*acl.BindingRule{rule, other}})
	require.NoError(t, err)
	require.Len(t, changes, 2)
	of := func(name string) (ids []string) {
		for b := range w.store.Snapshot().BindingRulesOf(name) {
			ids = append(ids, b.ID)
		}
		return ids
	}
	require.Equal(t, []string{"r"}, of("a"))
	require.Equal(t, []string{"s"}, of("ab"))
	moved := *rule
	moved.AuthMethod = "ab"
	_, _, err = w.apply(&command.UpsertBindingRules{Rules: []*acl.BindingRule{&moved}})
	require.NoError(t, err)
	require.Equal(t, []string{"r", "s"}, of("ab"))
	require.Empty(t, of("a"))
	for _, bad := range [][]*acl.BindingRule{{nil}, {{}}, {rule, rule}} {
		_, _, err = w.apply(&command.UpsertBindingRules{Rules: bad})
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	_, _, err = w.apply(&command.DeleteBindingRules{IDs: []string{"none"}})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, changes, err = w.apply(&command.DeleteBindingRules{IDs: []string{"r", "s"}})
	require.NoError(t, err)
	require.Len(t, changes, 2)
	_, _, known, _ := Apply(w.store.Begin(99), 99, &command.Barrier{})
	require.False(t, known)
}
