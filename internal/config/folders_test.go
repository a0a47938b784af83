package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFoldersOfTheNode(t *testing.T) {
	t.Parallel()
	with := func(alloc, state string) error {
		return Merge(Merge(Default(), DevMode()), &Agent{DataDir: "/data", Client: &Client{AllocDir: alloc, StateDir: state}}).Validate()
	}
	require.NoError(t, with("/disk/alloc", "/ssd/state"))
	require.NoError(t, with("/data/allocations", "/data/client"))
	for alloc, problem := range map[string]string{
		"alloc": "absolute", "/": "absolute", "/data": "holds data_dir", "/data/server/x": "has other things", "/data/client": "has other things",
	} {
		require.ErrorContains(t, with(alloc, ""), "client.alloc_dir: ")
		require.ErrorContains(t, with(alloc, ""), problem)
	}
	require.ErrorContains(t, with("", "/data/alloc/state"), "client.state_dir: ")
	require.ErrorContains(t, with("/disk", "/disk/state"), "within each other")
}
