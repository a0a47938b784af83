package fsm

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

func TestDemandIsNoNewVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	env := job("env", "service", 1)
	env.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
	j := b.do(register(env)).(*drover.Job)
	b.do(plan(j, placed("a", "env")))
	demand := func(id string, n int) {
		b.do(&command.ClaimRunners{Demands: []command.PoolDemand{{Namespace: "default", JobID: id, Demand: n}}})
	}
	demand("env", 3)
	demand("unknown", 3)
	now := b.now().Job("default", "env")
	require.Equal(t, 3, now.TaskGroups[0].Pool.Demand)
	require.Equal(t, j.Version, now.Version)
	require.Equal(t, j.JobModifyIndex, now.JobModifyIndex)
	require.Greater(t, now.ModifyIndex, j.ModifyIndex)
	require.Zero(t, j.TaskGroups[0].Pool.Demand, "what is stored is not changed")
	sameAfterRestore(t, b)
	demand("env", -1)
	require.Zero(t, b.now().Job("default", "env").TaskGroups[0].Pool.Demand)
	sameAfterRestore(t, b)
}

func TestAnExtendedClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	env := job("env", "service", 1)
	env.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
	j := b.do(register(env)).(*drover.Job)
	b.do(plan(j, placed("a", "env")))
	for _, idle := range []time.Duration{time.Minute, time.Hour} {
		claim := drover.Claim{RunnerID: "r1", IdleTimeout: idle}
		v := b.do(&command.ClaimRunners{Claims: []command.RunnerClaim{{AllocID: "a", Claim: claim}}})
		require.NoError(t, v.([]command.ClaimResult)[0].Err)
		require.Equal(t, idle, b.now().Allocation("a").Claim.IdleTimeout)
	}
}

// sameAfterRestore restores a snapshot elsewhere and compares.
func sameAfterRestore(t *testing.T, b *bench) {
	t.Helper()
	var image bytes.Buffer
	require.NoError(t, b.f.Snapshot(&image))
	g := New(store.New(), nil)
	require.NoError(t, g.Restore(bytes.NewReader(image.Bytes())))
	require.Equal(t, b.f.Hash(), g.Hash(), "after a restore")
}
