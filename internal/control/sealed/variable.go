package sealed

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/secrets"
)

// ChangeVariable applies the command. Errors: Invalid, Exhausted if the quota of the namespace has not as many bytes left.
func ChangeVariable(txn *store.Txn, index uint64, c *command.ChangeVariable) (*command.VariableChange, error) {
	v := c.Var
	if v == nil || v.Path == "" || v.Namespace == "" {
		return nil, drover.Errorf(drover.Invalid, "variable: it must have a namespace and a path")
	}
	if txn.Namespace(v.Namespace) == nil {
		return nil, drover.Errorf(drover.Invalid, "namespace %q does not exist", v.Namespace)
	}
	if len(v.Data) > 0 && txn.RootKey(v.KeyID) == nil {
		return nil, drover.Errorf(drover.Unavailable, "root key %s was removed meanwhile: try again", v.KeyID)
	}
	old := txn.Variable(v.Namespace, v.Path)
	if inTheWay(old, c) {
		return &command.VariableChange{Var: old, Conflict: true}, nil
	}
	next := secrets.SealedVariable{Namespace: v.Namespace, Path: v.Path, CreateIndex: index, CreateTime: c.Time}
	if old != nil {
		next = *old
	}
	if len(v.Data) > 0 {
		next.KeyID, next.Data = v.KeyID, v.Data
	}
	switch c.Op {
	case command.PutVariable:
	case command.DeleteVariable:
		if old != nil {
			txn.DeleteVariable(old)
		}
		return &command.VariableChange{}, nil
	case command.LockVariable:
		next.Lock = v.Lock
	case command.UnlockVariable:
		next.Lock = nil
	case command.RekeyVariable:
		txn.PutVariable(&next)
		return &command.VariableChange{Var: &next}, nil
	default:
		return nil, drover.Errorf(drover.Invalid, "variable %s: unknown operation %d", v.Path, c.Op)
	}
	if err := paid(txn, old, &next); err != nil {
		return nil, err
	}
	next.ModifyIndex, next.ModifyTime = index, c.Time
	txn.PutVariable(&next)
	return &command.VariableChange{Var: &next}, nil
}

// paid refuses a variable that grows beyond the quota of its namespace; old is nil for a new one.
func paid(txn *store.Txn, old, next *secrets.SealedVariable) error {
	more := quota.OfVariable(next)
	if old != nil {
		more = more.Sub(quota.OfVariable(old))
	}
	if err := txn.QuotaAccount(next.Namespace).Refusal("", more); err != nil {
		return fmt.Errorf("variable %s of namespace %q: %w", next.Path, next.Namespace, err)
	}
	return nil
}

// inTheWay reports whether the variable as it is keeps the change from being made.
func inTheWay(old *secrets.SealedVariable, c *command.ChangeVariable) bool {
	at, held := uint64(0), ""
	if old != nil {
		at = old.ModifyIndex
		if old.Lock != nil {
			held = old.Lock.ID
		}
	}
	switch {
	case c.Check && c.CheckIndex != at:
		return true
	case c.Op == command.RekeyVariable:
		return old == nil
	case c.Op == command.UnlockVariable:
		return held == "" || held != c.LockID
	}
	return held != "" && held != c.LockID
}
