package store

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// secretTables are those of what is kept encrypted.
func secretTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(tables.RootKeys, func(k *secrets.RootKey) string { return term(k.KeyID) }),
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
