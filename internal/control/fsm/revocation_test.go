package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

// revocation draws a command about certificates that are refused.
func (d draw) revocation() command.Command {
	if rapid.Bool().Draw(d.t, "forget") {
		return &command.ForgetRevocations{IDs: []string{d.id("node:", 3), d.id("node:", 3)}, Before: d.time() % 3}
	}
	return &command.RevokeCertificate{Revocation: &cluster.Revocation{ID: d.id("node:", 3), Reason: "drawn", ExpireTime: d.time() % 3}}
}

// TestRevocations are stored up to a bound, last as long as the longest of them, are taken back all or none, and forgotten when they ended.
func TestRevocations(t *testing.T) {
	t.Parallel()
	f := New(store.New(), nil)
	index := uint64(0)
	do := func(c command.Command) error {
		data, err := command.Encode(c)
		require.NoError(t, err)
		index++
		_, err = f.Apply(index, data)
		return err
	}
	revoke := func(id string, created, expires int64) error {
		return do(&command.RevokeCertificate{Revocation: &cluster.Revocation{ID: id, CreateTime: created, ExpireTime: expires}})
	}
	get := func(id string) *cluster.Revocation { return f.store.Snapshot().Revocation(id) }
	require.NoError(t, revoke("serial:1", 5, 100))
	require.NoError(t, revoke("serial:1", 6, 50))
	require.Equal(t, &cluster.Revocation{ID: "serial:1", CreateTime: 5, ExpireTime: 100, CreateIndex: 1, ModifyIndex: 2}, get("serial:1"))
	require.NoError(t, revoke("serial:1", 6, 0))
	require.Zero(t, get("serial:1").ExpireTime, "until somebody takes it back is longest")
	require.NoError(t, revoke("serial:1", 6, 70))
	require.Zero(t, get("serial:1").ExpireTime)
	require.NoError(t, revoke("serial:2", 6, 70))

	require.Equal(t, drover.Invalid, drover.CodeOf(do(&command.RevokeCertificate{})))
	require.Equal(t, drover.NotFound, drover.CodeOf(do(&command.ForgetRevocations{IDs: []string{"serial:1", "serial:3"}})))
	require.NotNil(t, get("serial:1"), "all or none")
	require.NoError(t, do(&command.ForgetRevocations{IDs: []string{"serial:1", "serial:2", "serial:3"}, Before: 69}))
	require.NotNil(t, get("serial:2"))
	require.NoError(t, do(&command.ForgetRevocations{IDs: []string{"serial:1", "serial:2", "serial:2", "serial:3"}, Before: 70}))
	require.Nil(t, get("serial:2"))
	require.NotNil(t, get("serial:1"))
	require.NoError(t, do(&command.ForgetRevocations{IDs: []string{"serial:1"}}))
	require.Nil(t, get("serial:1"))

	txn := f.store.Begin(index + 1)
	for i := range cluster.MaxRevocations {
		txn.PutRevocation(&cluster.Revocation{ID: fmt.Sprintf("serial:%x", i+1)})
	}
	txn.Commit()
	index++
	require.Equal(t, drover.Conflict, drover.CodeOf(revoke("node:one-too-many", 1, 0)))
	require.NoError(t, revoke("serial:1", 1, 0), "one that is there may change")
}
