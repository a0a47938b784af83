package store

import (
	"iter"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// indexKey finds variables by the root key that encrypted them.
const indexKey = "key"

// secretTables are those of what is kept encrypted.
func secretTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(tables.RootKeys, func(k *secrets.RootKey) string { return term(k.KeyID) }),
		table(tables.Variables, func(v *secrets.SealedVariable) string { return term(v.Namespace) + term(v.Path) },
			index(indexKey, func(v *secrets.SealedVariable) string { return term(v.KeyID) + term(v.Namespace) + term(v.Path) })),
	}
}

// RootKey returns the root key or nil.
func (r *reader) RootKey(id string) *secrets.RootKey {
	return get[secrets.RootKey](r, tables.RootKeys, term(id))
}

// RootKeys yields the root keys, ordered by id.
func (r *reader) RootKeys() iter.Seq[*secrets.RootKey] {
	return scan[secrets.RootKey](r, tables.RootKeys, indexID, "")
}

// PutRootKey stores the root key.
func (t *Txn) PutRootKey(k *secrets.RootKey) { t.put(tables.RootKeys, k.KeyID, k) }

// DeleteRootKey forgets the root key.
func (t *Txn) DeleteRootKey(k *secrets.RootKey) { t.drop(tables.RootKeys, k.KeyID, k) }

// RestoreRootKey stores a root key.
func (t *Txn) RestoreRootKey(k *secrets.RootKey) { t.insert(tables.RootKeys, k) }

// Variable returns the variable or nil.
func (r *reader) Variable(namespace, path string) *secrets.SealedVariable {
	return get[secrets.SealedVariable](r, tables.Variables, term(namespace)+term(path))
}

// Variables yields the namespace's variables ("*" = of all) whose paths begin with prefix, ordered by namespace and path.
func (r *reader) Variables(namespace, prefix string) iter.Seq[*secrets.SealedVariable] {
	if namespace == "*" {
		return filter(scan[secrets.SealedVariable](r, tables.Variables, indexID, ""),
			func(v *secrets.SealedVariable) bool { return strings.HasPrefix(v.Path, prefix) })
	}
	return scan[secrets.SealedVariable](r, tables.Variables, indexID, term(namespace)+prefix)
}

// VariablesOfKey yields the variables that the root key encrypted.
func (r *reader) VariablesOfKey(keyID string) iter.Seq[*secrets.SealedVariable] {
	return scan[secrets.SealedVariable](r, tables.Variables, indexKey, term(keyID))
}

// PutVariable stores the variable.
func (t *Txn) PutVariable(v *secrets.SealedVariable) {
	t.chargeVariable(t.Variable(v.Namespace, v.Path), v)
	t.put(tables.Variables, tables.JobKey(v.Namespace, v.Path), v)
}

// DeleteVariable forgets the variable.
func (t *Txn) DeleteVariable(v *secrets.SealedVariable) {
	t.chargeVariable(v, nil)
	t.drop(tables.Variables, tables.JobKey(v.Namespace, v.Path), v)
}

// RestoreVariable stores a variable.
func (t *Txn) RestoreVariable(v *secrets.SealedVariable) {
	t.chargeVariable(nil, v)
	t.insert(tables.Variables, v)
}
