package command

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestKindsKeepTheirNumbers: they are in logs on disk. A new kind gets the next number, and none ever another one.
func TestKindsKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	for i, name := range []string{
		"Barrier", "Batch", "RegisterJob", "DeregisterJob", "UpdateEvals", "DeleteEvals", "ApplyPlans", "UpdateAllocs",
		"TransitionAllocs", "StopAllocs", "ClaimRunners", "RegisterNode", "UpdateNodeStatuses", "SetEligibility", "SetDrain",
		"DeregisterNodes", "SetSchedulerConfig", "UpsertNamespaces", "DeleteNamespaces", "UpsertNodePools", "DeleteNodePools",
		"UpsertDeployment", "UpdateDeploymentStatus", "SetAllocHealth", "PromoteDeployment", "SetJobStability", "TagJobVersion",
		"Reap", "RecordScaling", "SetNodeMeta", "InitFleet", "PutFleetPools", "DeleteFleetPools", "UpdateFleet", "BindFleetNode",
		"TellExecutions", "InitCluster", "DispatchJob", "RecordExecutions",
		"BeginIncarnation", "EndIncarnation", "RecordRunners", "RaiseVersion", "RestoreState", "SetAutopilot", "ApplyFleetPools",
		"NameFleet",
	} {
		k := Kind(i + 1)
		require.Equal(t, name, k.String(), "number %d", k)
		require.Equal(t, name, reflect.TypeOf(kinds[k]()).Elem().Name(), "number %d", k)
	}
	for _, unknown := range []Kind{0, kindEnd, 255} {
		require.Contains(t, unknown.String(), "kind(")
	}
}

// TestEveryFieldOfEveryCommandIsKept sets all fields of all commands: one that the codec leaves out is found.
func TestEveryFieldOfEveryCommandIsKept(t *testing.T) {
	t.Parallel()
	for k := Kind(1); k < kindEnd; k++ {
		if k == KindBatch || k == KindApplyPlans {
			continue // they have tests of their own: a batch holds commands, a plan's allocations have no job
		}
		c, n := kinds[k](), 0
		filled(reflect.ValueOf(c).Elem(), &n)
		require.Empty(t, cmp.Diff(c, roundTrip(t, c)), "%s", k)
	}
}

// TestNoCutCommandIsTaken: an entry that was cut off or changed on disk is an error or another command, and never a panic.
// Updates are fields one after another: cut behind one of them they are fewer updates. The log has a checksum for that.
func TestNoCutCommandIsTaken(t *testing.T) {
	t.Parallel()
	for k := Kind(1); k < kindEnd; k++ {
		c := kinds[k]()
		if k != KindBatch && k != KindApplyPlans {
			n := 0
			filled(reflect.ValueOf(c).Elem(), &n)
		}
		data, err := Encode(c)
		require.NoError(t, err)
		step := max(1, len(data)/30)
		for n := 2; n < len(data); n += step {
			_, err := Decode(data[:n])
			require.True(t, err != nil || k == KindUpdateAllocs, "%s cut to %d of %d bytes", k, n, len(data))
			changed := append([]byte{}, data...)
			changed[n] ^= 0xff
			_, _ = Decode(changed)
		}
	}
}
