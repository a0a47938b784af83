package command

import (
	"flag"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/shapetest"
	"github.com/drover-project/drover/tenancy"
)

var updateShapes = flag.Bool("update", false, "write the shapes of the newest version; those of older ones never change")

// gates says of each field that was added to an older version's what keeps it from being written before all servers know it.
var gates = map[string]string{
	"drover.Allocation.Lease":                "only the state machine sets it, to an incarnation, and BeginIncarnation needs version 2",
	"drover.Allocation.Reported":             "only the state machine sets it, to the order of a report, which needs version 2",
	"execution.Execution.Taken":              "nodes say it to servers; nothing that is recorded has it",
	"execution.Spec.Secrets":                 "secrets name variables or need a root key, and before version 3 there are neither",
	"execution.Spec.Values":                  "servers say it to nodes; nothing that is recorded has it",
	"execution.Spec.Keep":                    "servers say it to nodes; nothing that is recorded has it",
	"drover.HostVolumeInfo.Report":           "nodes say it of volumes that control asked for, which needs version 3",
	"drover.Namespace.Capabilities":          "UpsertNamespaces with it needs version 3",
	"drover.Namespace.Images":                "UpsertNamespaces with it needs version 3",
	"drover.Namespace.RequiredExtraClaims":   "UpsertNamespaces with it needs version 3",
	"drover.Namespace.OptionalExtraClaims":   "UpsertNamespaces with it needs version 3",
	"drover.WorkloadIdentity.ExtraClaims":    "a job names claims of its namespace, and UpsertNamespaces with those needs version 3",
	"command.TellExecutions.Time":            "intake sets it only if there are quotas, which need version 3",
	"command.RegisterJob.Versions":           "RegisterJob with it needs version 3",
	"command.DeregisterJob.Versions":         "DeregisterJob with it needs version 3",
	"command.RunnerClaim.Bounded":            "only claims under a quota have it, and a namespace's quota needs version 3",
	"drover.Namespace.NodePoolConfiguration": "UpsertNamespaces with it needs version 3",
	"exchange.AllocUpdate.Order":             "control/assignment leaves it out before version 2",
	"fleet.Identity.Also":                    "only NameFleet and RestoreState add to it, which need version 2",
	"fleet.Identity.Former":                  "only RestoreState adds to it, which needs version 2",
	"fleet.Durable.Of":                       "only RestoreState sets it, which needs version 2",
	"drover.Allocation.FailingServices":      "only the state machine sets it, to what a report says, which needs version 3",
	"exchange.AllocUpdate.FailingServices":   "control/assignment leaves it out before version 3",
	"command.PlanCommit.Warm":                "control/planner leaves it out before version 3",
	"command.PlanCommit.Withheld":            "control/planner leaves it out before version 3",
	"command.PlanCommit.AllAtOnce":           "control/planner leaves it out before version 3",
}

// TestShapes fails when what is written to the log changes without a cluster version. It says what to do then.
func TestShapes(t *testing.T) {
	t.Parallel()
	s := shapetest.Shapes{Folder: "testdata/shapes", Newest: Newest, Update: *updateShapes, Gates: gates}
	roots := map[string]any{}
	for k := Kind(1); k < kindEnd; k++ {
		var value any = kinds[k]()
		if k == KindApplyPlans {
			value = new(wirePlans)
		}
		roots[fmt.Sprintf("kind %d of version %d %s", k, k.Since(), k)] = value
	}
	roots["allocation"] = new(drover.Allocation)
	s.Check(t, shapetest.Of(roots))

	n := 0
	alloc, updates := &drover.Allocation{}, &UpdateAllocs{}
	filled(reflect.ValueOf(alloc).Elem(), &n)
	alloc.Job, alloc.AllocatedResources, alloc.Metrics = nil, nil, nil // they are written once for many
	filled(reflect.ValueOf(updates).Elem(), &n)
	updates.Evals = nil // they are no records of numbered fields
	record, err := AppendAllocation(nil, alloc)
	require.NoError(t, err)
	entry, err := Encode(updates)
	require.NoError(t, err)
	s.Bytes(t, map[string][]byte{"allocation": record, "updates": entry}, func(name string, data []byte) ([]byte, error) {
		if name == "updates" {
			c, err := Decode(data)
			if err != nil {
				return nil, err
			}
			return Encode(c)
		}
		a, err := DecodeAllocation(data, nil)
		if err != nil {
			return nil, err
		}
		return AppendAllocation(nil, a)
	})
}

// TestEveryKindHasAVersion: kinds are appended, so a version's kinds stand behind those of the one before.
func TestEveryKindHasAVersion(t *testing.T) {
	t.Parallel()
	version := 1
	for k := Kind(1); k < kindEnd; k++ {
		require.GreaterOrEqual(t, k.Since(), version, "%s", k)
		version = k.Since()
	}
	require.Equal(t, Newest, version, "a version has a kind, at least")
	require.Equal(t, 1, KindInitCluster.Since())
	require.Equal(t, 2, KindRaiseVersion.Since())
}

// TestNeeds: a batch needs what its commands need; the version is raised before it is there.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for k := Kind(1); k < kindEnd; k++ {
		if k != KindRaiseVersion {
			require.Equal(t, k.Since(), Needs(kinds[k]()), "%s", k)
			require.Equal(t, k.Since(), Needs(&Batch{Commands: []Command{&Barrier{}, kinds[k]()}}), "%s", k)
		}
	}
	require.Equal(t, 1, Needs(&RaiseVersion{Version: Newest}))
	require.Equal(t, 3, Needs(&UpsertNamespaces{Namespaces: []*tenancy.Namespace{{}, {Images: &tenancy.NamespaceImages{}}}}))
	require.Equal(t, 3, Needs(&UpsertNamespaces{Namespaces: []*tenancy.Namespace{{OptionalExtraClaims: map[string]string{"a": "b"}}}}))
	require.Equal(t, 3, Needs(&RegisterJob{Versions: 9}))
	require.Equal(t, 3, Needs(&DispatchJob{Register: RegisterJob{Versions: 9}}))
}
