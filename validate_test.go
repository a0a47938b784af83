package drover

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// valid is a job that can be registered, canonical.
func valid() *Job {
	j := &Job{ID: "j", TaskGroups: []*TaskGroup{{
		Name: "g", Networks: []*network.Resource{{DynamicPorts: []network.Port{{Label: "http"}}}},
		Services: []*service.Service{{
			Name: "web", PortLabel: "http", Checks: []map[string]any{{"Type": "http", "Path": "/", "PortLabel": "http"}},
		}},
		Tasks: []*Task{{Name: "t", Driver: "fake", Env: map[string]string{
			"PATH": "/x:${PATH}", "A": "${B} ${NOMAD_PORT_http} ${node.class}", "B": "$${nope.x} ${X:-1}",
		}}},
	}}}
	j.Canonicalize()
	return j
}

// fault is a piece of JSON that spoils a valid job, and what is said of that.
type fault struct{ json, want string }

// refused puts each fault into a part of a valid job of that type and expects what is said of it.
func refused(t *testing.T, jobType string, part func(*Job) any, faults []fault) {
	t.Helper()
	for _, f := range faults {
		j := valid()
		j.Type = jobType
		// JSON is read into what is there: lists of the valid job would fill in what a fault leaves out.
		require.NoError(t, json.Unmarshal([]byte(`{"Services": null, "Networks": null}`), part(j)))
		require.NoError(t, json.Unmarshal([]byte(f.json), part(j)), f.json)
		err := j.Validate()
		require.ErrorContains(t, err, f.want, f.json)
		require.Equal(t, Invalid, CodeOf(err))
	}
}

func ofJob(j *Job) any   { return j }
func ofGroup(j *Job) any { return j.TaskGroups[0] }
func ofTask(j *Job) any  { return j.TaskGroups[0].Tasks[0] }

func TestFaultsAreToldAllAtOnce(t *testing.T) {
	t.Parallel()
	require.NoError(t, valid().Validate())
	j := valid()
	j.Priority, j.TaskGroups[0].Tasks[0].Driver, j.TaskGroups[0].EphemeralDisk.SizeMB = 40_000, "", 1
	err := j.Validate()
	for _, want := range []string{"job.Priority", "job.group[g].task[t].Driver", "job.group[g].EphemeralDisk.SizeMB"} {
		require.ErrorContains(t, err, want)
	}
}

func TestFaultsOfAJob(t *testing.T) {
	t.Parallel()
	refused(t, JobTypeService, ofJob, []fault{
		{`{"ID": ""}`, "job.ID: must be set"},
		{`{"ID": "a b"}`, "job.ID: must not contain spaces"},
		{`{"Name": ""}`, "job.Name: must be set"},
		{`{"Namespace": "a/b"}`, "job.Namespace: must be 1 to 128 letters"},
		{`{"NodePool": "a b"}`, "job.NodePool: must be 1 to 128 letters"},
		{`{"Priority": 0}`, "job.Priority: must be from 1 to the servers' job_max_priority, which is 100 unless they say otherwise, and " +
			"32766 at most, got 0"},
		{`{"Type": "daemon"}`, "job.Type: must be service, batch, system or sysbatch"},
		{`{"Datacenters": ["dc1", ""]}`, "job.Datacenters[1]: must not be empty"},
		{`{"TaskGroups": []}`, "job.TaskGroups: must have at least one group"},
		{`{"TaskGroups": [null]}`, "job.TaskGroups[0]: must not be null"},
		{`{"Periodic": {"SpecType": "cron", "Spec": "* * * * *"}}`, "job.Periodic: only batch and sysbatch jobs can be periodic"},
		{`{"ParameterizedJob": {"Payload": "optional"}}`, "job.ParameterizedJob: only batch and sysbatch"},
	})
	refused(t, JobTypeBatch, ofJob, []fault{
		{`{"Periodic": {"SpecType": "sundial", "Spec": "*"}}`, "job.Periodic.SpecType: must be cron"},
		{`{"Periodic": {"SpecType": "cron"}}`, "job.Periodic.Spec: must be set"},
		{`{"Periodic": {"SpecType": "cron", "Spec": "*", "Specs": ["*"]}}`, "job.Periodic: Spec and Specs exclude each other"},
		{`{"Periodic": {"SpecType": "cron", "Spec": "*", "TimeZone": "Moon/Base"}}`, `job.Periodic.TimeZone: unknown time zone "Moon/Base"`},
		{`{"Periodic": {"SpecType": "cron", "Spec": "*"}, "ParameterizedJob": {"Payload": "optional"}}`, "can't be periodic and parameterized"},
		{`{"ParameterizedJob": {"Payload": "maybe"}}`, "job.ParameterizedJob.Payload: must be optional, required or forbidden"},
		{
			`{"ParameterizedJob": {"Payload": "optional", "MetaOptional": ["k"], "MetaRequired": ["k"]}}`,
			`meta key "k" is required and optional`,
		},
	})
}

func TestFaultsOfPlacementRules(t *testing.T) {
	t.Parallel()
	faults := []fault{
		{`{"Constraints": [null]}`, "Constraints[0]: must not be null"},
		{`{"Constraints": [{"LTarget": "x", "Operand": "like", "RTarget": "y"}]}`, `Constraints[0].Operand: unknown operand "like"`},
		{`{"Constraints": [{"LTarget": "x", "Operand": "regexp", "RTarget": "("}]}`, "Constraints[0].RTarget: is no regular expression"},
		{`{"Constraints": [{"Operand": "is_set"}]}`, "Constraints[0].LTarget: must be set"},
		{`{"Constraints": [{"LTarget": "x", "Operand": "is_not_set", "RTarget": "y"}]}`, "Constraints[0].RTarget: must be empty"},
		{`{"Constraints": [{"LTarget": "x", "Operand": "<"}]}`, "Constraints[0].RTarget: must be set"},
		{`{"Constraints": [{"Operand": "=", "RTarget": "y"}]}`, "Constraints[0].LTarget: must be set"},
		{`{"Constraints": [{"LTarget": "${nope.z}", "Operand": "is_set"}]}`, "Constraints[0].LTarget: ${nope.z}"},
		{`{"Affinities": [null]}`, "Affinities[0]: must not be null"},
		{`{"Affinities": [{"Operand": "distinct_hosts", "Weight": 5}]}`, "Affinities[0].Operand: unknown operand"},
		{`{"Affinities": [{"Operand": "=", "Weight": 101}]}`, "Affinities[0].Weight: must be from -100 to 100 and not 0, got 101"},
		{`{"Affinities": [{"Operand": "=", "Weight": 0}]}`, "Affinities[0].Weight: must be from -100 to 100 and not 0"},
	}
	refused(t, JobTypeService, ofJob, faults)
	refused(t, JobTypeService, ofGroup, faults)
	refused(t, JobTypeService, ofTask, faults)
	spreads := []fault{
		{`{"Spreads": [null]}`, "Spreads[0]: must not be null"},
		{`{"Spreads": [{"Weight": 50}]}`, "Spreads[0].Attribute: must be set"},
		{`{"Spreads": [{"Attribute": "x", "Weight": -1}]}`, "Spreads[0].Weight: must be from 1 to 100"},
		{
			`{"Spreads": [{"Attribute": "x", "Weight": 1, "SpreadTarget": [{"Value": "a", "Percent": 60}, {"Value": "b", "Percent": 41}]}]}`,
			"Spreads[0].SpreadTarget: the percents add up to 101",
		},
	}
	refused(t, JobTypeService, ofJob, spreads)
	refused(t, JobTypeService, ofGroup, spreads)
	require.NoError(t, constrained("distinct_hosts", "", "").Validate(), "it needs no sides")
	require.NoError(t, constrained("distinct_property", "${meta.rack}", "").Validate(), "its limit is 1")
	require.NoError(t, constrained("=", "${meta.rack}", "").Validate(), "equal to nothing")
}

func constrained(operand, left, right string) *Job {
	j := valid()
	j.Constraints = []*constraint.Constraint{{Operand: operand, LTarget: left, RTarget: right}}
	return j
}

// Blocks that are not for the job's type are refused, however little of them is given.
func TestRollOutIsForJobsThatStay(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{JobTypeBatch, JobTypeSysBatch, JobTypeSystem} {
		j := &Job{ID: "j", Type: kind, TaskGroups: []*TaskGroup{{
			Name: "g", Update: &UpdateStrategy{Canary: 1}, Migrate: &MigrateStrategy{}, Tasks: []*Task{{Name: "t", Driver: "fake"}},
		}}}
		j.Canonicalize()
		require.Equal(t, 1, *j.TaskGroups[0].Update.MaxParallel)
		require.ErrorContains(t, j.Validate(), "job.group[g].Migrate: only service jobs", kind)
		if kind != JobTypeSystem {
			require.ErrorContains(t, j.Validate(), "job.group[g].Update: only service and system jobs", kind)
		}
	}
}

func TestScalingDefaults(t *testing.T) {
	t.Parallel()
	j := valid()
	j.TaskGroups[0].Count, j.TaskGroups[0].Scaling = new(3), &ScalingPolicy{Max: new(int64(5))}
	j.Canonicalize()
	require.Equal(t, &ScalingPolicy{Min: new(int64(3)), Max: new(int64(5)), Enabled: new(true), Type: "horizontal"}, j.TaskGroups[0].Scaling)
	require.NoError(t, j.Validate())
}

func TestOlderDisconnectFieldsBecomeTheBlock(t *testing.T) {
	t.Parallel()
	j := valid()
	g := j.TaskGroups[0]
	g.MaxClientDisconnect, g.PreventRescheduleOnLost = new(time.Hour), true
	for range 2 {
		j.Canonicalize()
		require.Equal(t, &DisconnectStrategy{LostAfter: time.Hour, Replace: new(false), Reconcile: ReconcileBestScore}, g.Disconnect)
		require.NoError(t, j.Validate())
	}
}
