package snapshot

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/shapetest"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
)

var updateShapes = flag.Bool("update", false, "write the shapes of the newest version; those of older ones never change")

// gates says of each field that was added to an older version's what keeps it from being written before all servers know it.
var gates = map[string]string{
	"cluster.State.Ahead":                    "only RestoreState sets it, which needs version 2",
	"drover.Allocation.Lease":                "only the state machine sets it, to an incarnation, and BeginIncarnation needs version 2",
	"drover.Allocation.Reported":             "only the state machine sets it, to the order of a report, which needs version 2",
	"drover.Namespace.Images":                "UpsertNamespaces with it needs version 3",
	"drover.Namespace.RequiredExtraClaims":   "UpsertNamespaces with it needs version 3",
	"drover.Namespace.OptionalExtraClaims":   "UpsertNamespaces with it needs version 3",
	"drover.WorkloadIdentity.ExtraClaims":    "a job names claims of its namespace, and UpsertNamespaces with those needs version 3",
	"drover.HostVolumeInfo.Report":           "nodes say it of volumes that control asked for, which needs version 3",
	"drover.Namespace.Capabilities":          "UpsertNamespaces with it needs version 3",
	"drover.Namespace.NodePoolConfiguration": "UpsertNamespaces with it needs version 3",
	"fleet.Identity.Also":                    "only NameFleet and RestoreState add to it, which need version 2",
	"fleet.Identity.Former":                  "only RestoreState adds to it, which needs version 2",
	"fleet.Durable.Of":                       "only RestoreState sets it, which needs version 2",
	"execution.Execution.Taken":              "nodes say it to servers; nothing that is recorded has it",
	"execution.Spec.Secrets":                 "secrets name variables or need a root key, and before version 3 there are neither",
	"execution.Spec.Values":                  "servers say it to nodes; nothing that is recorded has it",
	"execution.Spec.Keep":                    "servers say it to nodes; nothing that is recorded has it",
	"drover.Allocation.FailingServices":      "only the state machine sets it, to what a report says, which needs version 3",
}

// records is what the records of a snapshot hold. An allocation that is placed is the record of package command.
var records = map[recordKind]any{
	recMeta: metaRecord{}, recNamespace: tenancy.Namespace{}, recNodePool: drover.NodePool{},
	recSchedulerConfig: drover.SchedulerConfiguration{},
	recJobVersion:      drover.Job{}, recJob: jobRef{}, recJobRow: store.JobRow{}, recNode: drover.Node{}, recEval: drover.Evaluation{},
	recDeployment: drover.Deployment{}, recResources: drover.AllocatedResources{}, recMetrics: drover.AllocationMetric{},
	recOldJob: drover.Job{}, recAlloc: allocRecord{}, recEnd: endRecord{}, recScaling: drover.JobScalingEvents{},
	recFleetIdentity: fleet.Identity{}, recFleetPool: fleet.Pool{}, recFleetInstance: fleet.InstanceRecord{}, recFleetCost: fleet.Cost{},
	recPlaced: "", recJobSubmission: drover.JobSubmission{}, recFleetMemory: fleet.Memory{}, recCluster: cluster.State{},
	recExecution: execution.Record{}, recLessee: cluster.Lessee{}, recAutopilot: cluster.Autopilot{},
	recACLBootstrap: acl.Bootstrap{}, recACLPolicy: acl.Policy{}, recACLRole: acl.Role{}, recACLToken: acl.Token{},
	recOneTimeToken: acl.OneTimeToken{}, recRootKey: secrets.RootKey{},
	recAuthMethod: acl.AuthMethod{}, recBindingRule: acl.BindingRule{}, recVariable: secrets.SealedVariable{},
	recQuota: tenancy.QuotaSpec{}, recExecutionSlot: execution.Slot{}, recSpent: execution.Spent{},
	recAdmissionRule: drover.AdmissionRule{},
	recHostVolume:    volume.HostVolume{}, recVolumeClaim: volume.HostVolumeClaim{},
	recRevocation: cluster.Revocation{},
}

// TestShapes fails when what is written to snapshots changes without a cluster version. It says what to do then.
func TestShapes(t *testing.T) {
	t.Parallel()
	for kind := range recordKind(255) {
		_, listed := records[kind]
		err := (&imageReader{}).record(kind, []byte{0xc1}) // no value begins so
		require.Error(t, err)
		known := err.Error() != "unknown kind" || kind == recMeta || kind == recEnd
		require.Equal(t, known, listed, "record kind %d: records of this test list all kinds", kind)
		require.Equal(t, known, shareNames[kind] != "", "record kind %d: who surveys a snapshot is told what it is", kind)
	}
	roots := map[string]any{}
	for kind, value := range records {
		roots[fmt.Sprintf("record %d", kind)] = value
	}
	shapes := shapetest.Shapes{Folder: "testdata/shapes", Newest: command.Newest, Update: *updateShapes, Gates: gates}
	shapes.Check(t, released(shapetest.Of(roots)))
}

// released gives the types of this package the names that the shapes of version 1 have: they were package fsm's then.
func released(lines []string) []string {
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(l, "snapshot.", "fsm.")
	}
	slices.Sort(lines)
	return lines
}
