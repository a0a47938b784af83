package drover

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIgnoredBlocks(t *testing.T) {
	t.Parallel()
	j := &Job{TaskGroups: []*TaskGroup{nil, {
		Name: "g", Services: []*Service{{}, {}},
		Tasks: []*Task{
			nil,
			{Name: "a", Services: []*Service{{}}, Identities: []*WorkloadIdentity{{}}},
			{Name: "b", Identity: &WorkloadIdentity{}},
			{Name: "c"},
		},
	}}}
	require.Len(t, j.IgnoredBlocks(), 4)
	require.Equal(t, `group "g": service blocks are stored, but services are not registered or checked`, j.IgnoredBlocks()[0])
	require.Equal(t, `task "b": identity blocks are stored, but no tokens are made`, j.IgnoredBlocks()[3])
}
