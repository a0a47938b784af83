package logins

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// Change is what an event tells of: an object as it is now, or was when it went, without secrets.
type Change struct {
	Topic string
	Key   string
	Now   any
	Gone  bool
}

// Apply applies the command at the index, all of it or nothing, and reports whether it is one of this package's. Errors: those of the
// commands.
func Apply(t *store.Txn, index uint64, c command.Command) (result any, changes []Change, known bool, err error) {
	switch c := c.(type) {
	case *command.UpsertAuthMethods:
		result, changes, err = upsertMethods(t, index, c)
	case *command.DeleteAuthMethods:
		changes, err = deleteMethods(t, c.Names)
	case *command.UpsertBindingRules:
		result, changes, err = upsertRules(t, index, c.Rules)
	case *command.DeleteBindingRules:
		changes, err = deleteRules(t, c.IDs)
	default:
		return nil, nil, false, nil
	}
	return result, changes, true, err
}

// upsertMethods stores all the methods or none.
func upsertMethods(t *store.Txn, index uint64, c *command.UpsertAuthMethods) ([]*acl.AuthMethod, []Change, error) {
	next := map[string]*acl.AuthMethod{}
	out := make([]*acl.AuthMethod, len(c.Methods))
	for i, m := range c.Methods {
		switch {
		case m == nil || m.Name == "" || m.Config == nil:
			return nil, nil, drover.Errorf(drover.Invalid, "ACL auth method: it must have a name and a configuration")
		case next[m.Name] != nil:
			return nil, nil, drover.Errorf(drover.Invalid, "ACL auth method %s is given twice", m.Name)
		case m.Sealed != nil && t.RootKey(m.Sealed.KeyID) == nil:
			return nil, nil, drover.Errorf(drover.Unavailable, "root key %s was removed meanwhile: try again", m.Sealed.KeyID)
		}
		n, old := *m, t.AuthMethod(m.Name)
		switch {
		case c.Reseal && (old == nil || old.ModifyIndex != m.ModifyIndex):
			return nil, nil, drover.Errorf(drover.Conflict, "ACL auth method %s was changed meanwhile", m.Name)
		case c.Reseal:
			n.CreateIndex = old.CreateIndex
		case old != nil:
			n.CreateIndex, n.ModifyIndex = old.CreateIndex, index
		default:
			n.CreateIndex, n.ModifyIndex = index, index
		}
		out[i], next[m.Name] = &n, &n
	}
	if err := oneDefault(t, out, next); err != nil {
		return nil, nil, err
	}
	changes := []Change{}
	for _, m := range out {
		t.PutAuthMethod(m)
		if !c.Reseal { // which changes nothing that events tell of
			changes = append(changes, Change{Topic: drover.TopicAuthMethod, Key: m.Name, Now: m.WithoutSecrets()})
		}
	}
	return out, changes, nil
}

// oneDefault refuses a second default method of a type. What is replaced does not count.
func oneDefault(t *store.Txn, methods []*acl.AuthMethod, next map[string]*acl.AuthMethod) error {
	has := map[string]string{}
	for m := range t.AuthMethods("") {
		if m.Default && next[m.Name] == nil {
			has[m.Type] = m.Name
		}
	}
	for _, m := range methods {
		if other := has[m.Type]; m.Default && other != "" {
			return drover.Errorf(drover.Conflict, "default ACL auth method for type %s already exists: %s", m.Type, other)
		}
		if m.Default {
			has[m.Type] = m.Name
		}
	}
	return nil
}

// deleteMethods removes all the methods or none.
func deleteMethods(t *store.Txn, names []string) ([]Change, error) {
	doomed, err := All(names, t.AuthMethod, "auth method")
	changes := make([]Change, len(doomed))
	for i, m := range doomed {
		t.DeleteAuthMethod(m)
		changes[i] = Change{Topic: drover.TopicAuthMethod, Key: m.Name, Now: m.WithoutSecrets(), Gone: true}
	}
	return changes, err
}

// upsertRules stores all the rules or none.
func upsertRules(t *store.Txn, index uint64, rules []*acl.BindingRule) ([]*acl.BindingRule, []Change, error) {
	seen := map[string]bool{}
	out := make([]*acl.BindingRule, len(rules))
	for i, b := range rules {
		switch {
		case b == nil || b.ID == "":
			return nil, nil, drover.Errorf(drover.Invalid, "ACL binding rule: it must have an ID")
		case seen[b.ID]:
			return nil, nil, drover.Errorf(drover.Invalid, "ACL binding rule %s is given twice", b.ID)
		}
		seen[b.ID] = true
		if t.AuthMethod(b.AuthMethod) == nil {
			return nil, nil, drover.Errorf(drover.Invalid, "ACL auth method %s not found", b.AuthMethod)
		}
		n := *b
		n.CreateIndex, n.ModifyIndex = index, index
		if old := t.BindingRule(b.ID); old != nil {
			n.CreateIndex = old.CreateIndex
		}
		out[i] = &n
	}
	changes := make([]Change, len(out))
	for i, b := range out {
		t.PutBindingRule(b)
		changes[i] = Change{Topic: drover.TopicBindingRule, Key: b.ID, Now: b}
	}
	return out, changes, nil
}

// deleteRules removes all the rules or none.
func deleteRules(t *store.Txn, ids []string) ([]Change, error) {
	doomed, err := All(ids, t.BindingRule, "binding rule")
	changes := make([]Change, len(doomed))
	for i, b := range doomed {
		t.DeleteBindingRule(b)
		changes[i] = Change{Topic: drover.TopicBindingRule, Key: b.ID, Now: b, Gone: true}
	}
	return changes, err
}

// All finds each object of access control by its key, once. Errors: NotFound, which says what it is and its key.
func All[T any](keys []string, find func(string) *T, what string) ([]*T, error) {
	var out []*T
	seen := map[string]bool{}
	for _, key := range keys {
		v := find(key)
		if v == nil {
			return nil, drover.Errorf(drover.NotFound, "ACL %s not found: %s", what, key)
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, v)
		}
	}
	return out, nil
}
