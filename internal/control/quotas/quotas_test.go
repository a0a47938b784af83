package quotas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

func TestQuotasAreDeletedWhenNothingRefersToThem(t *testing.T) {
	t.Parallel()
	s := store.New()
	txn := s.Begin(1)
	two := &command.UpsertQuotas{Quotas: []*drover.QuotaSpec{{Name: "a"}, {Name: "b"}}}
	require.NoError(t, Upsert(txn, 1, two))
	require.Error(t, Upsert(txn, 1, &command.UpsertQuotas{Quotas: []*drover.QuotaSpec{nil}}))
	n := &drover.Namespace{Name: "n", Quota: "a"}
	require.NoError(t, Check(txn, []*drover.Namespace{n}))
	require.ErrorContains(t, Check(txn, []*drover.Namespace{{Name: "m", Quota: "c"}}), `namespace "m": Quota: nonexistent quota "c"`)
	txn.PutNamespace(n)
	err := Delete(txn, &command.DeleteQuotas{Names: []string{"b", "a"}})
	require.ErrorContains(t, err, `quota "a" is in use: namespace "n" refers to it`)
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.NotNil(t, txn.Quota("b"), "all or none")
	require.Equal(t, drover.NotFound, drover.CodeOf(Delete(txn, &command.DeleteQuotas{Names: []string{"c"}})))
	txn.Commit()

	txn = s.Begin(2)
	require.NoError(t, Upsert(txn, 2, two))
	require.Equal(t, []uint64{1, 2}, []uint64{txn.Quota("a").CreateIndex, txn.Quota("a").ModifyIndex})
	txn.PutNamespace(&drover.Namespace{Name: "n"})
	require.NoError(t, Delete(txn, &command.DeleteQuotas{Names: []string{"b", "a", "a"}}))
	require.Nil(t, txn.Quota("a"))
	txn.Commit()
}
