package store

import (
	"iter"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/tables"
)

// Revocation returns the revocation or nil.
func (r *reader) Revocation(id string) *cluster.Revocation {
	return get[cluster.Revocation](r, tables.Revocations, term(id))
}

// Revocations yields the revocations by id.
func (r *reader) Revocations() iter.Seq[*cluster.Revocation] {
	return scan[cluster.Revocation](r, tables.Revocations, indexID, "")
}

// PutRevocation stores the revocation.
func (t *Txn) PutRevocation(r *cluster.Revocation) { t.put(tables.Revocations, r.ID, r) }

// DeleteRevocation forgets the revocation.
func (t *Txn) DeleteRevocation(r *cluster.Revocation) { t.drop(tables.Revocations, r.ID, r) }

// RestoreRevocation stores a revocation.
func (t *Txn) RestoreRevocation(r *cluster.Revocation) { t.insert(tables.Revocations, r) }
