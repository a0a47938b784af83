package sealed

import (
	"iter"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/secrets"
)

// PutRootKey applies the command. Errors: Conflict, Invalid.
func PutRootKey(txn *store.Txn, index uint64, c *command.PutRootKey) (*secrets.RootKeyMeta, error) {
	k := c.Key
	if k == nil || k.KeyID == "" || len(k.Wrapped) == 0 {
		return nil, drover.Errorf(drover.Invalid, "root key: it must have an id and be wrapped")
	}
	if k.State != secrets.Active && k.State != secrets.Prepublished {
		return nil, drover.Errorf(drover.Invalid, "root key %s: a new one is active or prepublished, not %q", k.KeyID, k.State)
	}
	if txn.RootKey(k.KeyID) != nil {
		return nil, drover.Errorf(drover.Conflict, "root key %s is there already", k.KeyID)
	}
	if c.First {
		for range txn.RootKeys() {
			return nil, drover.Errorf(drover.Conflict, "there is a root key already")
		}
	}
	next := *k
	next.CreateIndex, next.ModifyIndex, next.RetiredIndex, next.RetiredTime = index, index, 0, 0
	if next.State == secrets.Active {
		retire(txn, index, c.Time, c.Full)
	}
	txn.PutRootKey(&next)
	return next.Meta(), nil
}

// retire makes the active key inactive; with full it and the inactive ones are rekeying.
func retire(txn *store.Txn, index uint64, now int64, full bool) {
	for _, k := range slices.Collect(txn.RootKeys()) {
		next := *k
		switch {
		case k.State == secrets.Active:
			next.State, next.RetiredIndex, next.RetiredTime = secrets.Inactive, index, now
		case k.State != secrets.Inactive || !full:
			continue
		}
		if full {
			next.State = secrets.Rekeying
		}
		next.ModifyIndex = index
		txn.PutRootKey(&next)
	}
}

// SetRootKeyState applies the command. Errors: NotFound, Conflict.
func SetRootKeyState(txn *store.Txn, index uint64, c *command.SetRootKeyState) error {
	k := txn.RootKey(c.KeyID)
	if k == nil {
		return drover.Errorf(drover.NotFound, "root key %s not found", c.KeyID)
	}
	if k.State != c.From {
		return drover.Errorf(drover.Conflict, "root key %s is %s, not %s", c.KeyID, k.State, c.From)
	}
	if k.State == secrets.Active {
		return drover.Errorf(drover.Conflict, "root key %s is active: only another one that becomes active ends that", c.KeyID)
	}
	switch {
	case k.State == secrets.Prepublished && c.To == secrets.Active:
		retire(txn, index, c.Time, false)
	case k.State == secrets.Rekeying && c.To == secrets.Deprecated:
	default:
		return drover.Errorf(drover.Conflict, "root key %s is %s, which does not become %s", c.KeyID, k.State, c.To)
	}
	next := *k
	next.State, next.ModifyIndex = c.To, index
	txn.PutRootKey(&next)
	return nil
}

// DeleteRootKeys applies the command. Errors: NotFound, Invalid, Conflict.
func DeleteRootKeys(txn *store.Txn, c *command.DeleteRootKeys) error {
	var doomed []*secrets.RootKey
	for _, id := range c.KeyIDs {
		k := txn.RootKey(id)
		switch {
		case k == nil:
			return drover.Errorf(drover.NotFound, "root key %s not found", id)
		case k.State == secrets.Active:
			return drover.Errorf(drover.Invalid, "root key %s is active: rotate the keyring before it is removed", id)
		}
		if why := Use(txn, k); why != "" && !c.Force {
			return drover.Errorf(drover.Conflict, "root key %s is in use: %s", id, why)
		}
		if !slices.Contains(doomed, k) {
			doomed = append(doomed, k)
		}
	}
	for _, k := range doomed {
		txn.DeleteRootKey(k)
	}
	return nil
}

// State is what Use reads: a transaction or a snapshot of the store.
type State interface {
	Allocations(namespace, prefix string) iter.Seq[*drover.Allocation]
	Encrypted
}

// Encrypted is what root keys encrypted.
type Encrypted interface {
	VariablesOfKey(keyID string) iter.Seq[*secrets.SealedVariable]
	AuthMethods(prefix string) iter.Seq[*acl.AuthMethod]
}

// With says something that the root key encrypted; "" = there is nothing.
func With(s Encrypted, keyID string) string {
	for v := range s.VariablesOfKey(keyID) {
		return "variable " + v.Path + " of namespace " + v.Namespace + " is encrypted with it"
	}
	for m := range s.AuthMethods("") {
		if m.Sealed != nil && m.Sealed.KeyID == keyID {
			return "the secrets of auth method " + m.Name + " are encrypted with it"
		}
	}
	return ""
}

// Use says what a key that is not active may still be needed for; "" = for nothing. Identities without an end are made with the
// key that is active when their allocation is placed: whatever was placed before the key was retired may have one.
func Use(s State, k *secrets.RootKey) string {
	if k.State == secrets.Prepublished {
		return ""
	}
	if why := With(s, k.KeyID); why != "" {
		return why
	}
	for a := range s.Allocations("*", "") {
		if !a.Terminal() && a.CreateIndex < k.RetiredIndex && a.CreateIndex >= k.CreateIndex {
			return "allocation " + a.ID + " may have identities that it signed"
		}
	}
	return ""
}
