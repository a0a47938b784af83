package intake

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/volume"
)

// asked is a request of which the caller is known.
type asked struct{ caller *rights.Caller }

func (a asked) Caller() *rights.Caller { return a.caller }

// by is the context of a request of a token with the policies and roles.
func by(ctx context.Context, policies []string, roles ...string) context.Context {
	token := &acl.Token{Type: acl.ClientToken, Name: "t", Policies: policies}
	for _, name := range roles {
		token.Roles = append(token.Roles, &acl.TokenRole{ID: name, Name: name})
	}
	return context.WithValue(ctx, rights.RequestKey{}, asked{&rights.Caller{Token: token}})
}

func (b *bundle) rule(r drover.AdmissionRule) {
	b.t.Helper()
	_, err := b.UpsertAdmissionRule(b.t.Context(), &r)
	require.NoError(b.t, err)
}

// TestAdmissionRulesAreEnforced at all by which something of a job begins, and refuse with their names and messages. What ends something is
// not refused.
func TestAdmissionRulesAreEnforced(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	j := job("j", drover.JobTypeService)
	b.register(j)
	_, err := b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(3)})
	require.NoError(t, err)
	param := job("p", drover.JobTypeBatch)
	param.ParameterizedJob = &drover.ParameterizedJobConfig{}
	b.register(param)
	periodic := job("per", drover.JobTypeBatch)
	periodic.Periodic = &drover.PeriodicConfig{Spec: "@daily"}
	b.register(periodic)

	b.rule(drover.AdmissionRule{Name: "no-fake", When: `Driver == "fake"`, Message: "take a real driver", Namespaces: []string{"def*"}})
	b.rule(drover.AdmissionRule{Name: "elsewhere", When: `Driver != ""`, Namespaces: []string{"other"}})
	refused := func(_ drover.Outcome, err error) {
		t.Helper()
		code(t, drover.Invalid, err, `job.group[g].task[t]: admission rule "no-fake": take a real driver (Driver is "fake")`)
	}
	refused(b.RegisterJob(ctx, drover.RegisterRequest{Job: j}))
	refused(drover.Outcome{}, b.ValidateJob(ctx, j))
	_, err = b.PlanJob(ctx, j, false)
	refused(drover.Outcome{}, err)
	refused(b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 0}))
	refused(b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(4)}))
	refused(b.DispatchJob(ctx, drover.DispatchRequest{Namespace: "default", ID: "p"}))
	refused(b.ForcePeriodic(ctx, "default", "per"))

	_, err = b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(1)})
	require.NoError(t, err, "less of what is refused is no harm")
	_, err = b.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: "default", ID: "j"})
	require.NoError(t, err)
	_, err = b.DeleteAdmissionRule(ctx, "no-fake")
	require.NoError(t, err)
	b.register(j)
	_, err = b.DeleteAdmissionRule(ctx, "no-fake")
	code(t, drover.NotFound, err, `admission rule not found: "no-fake"`)
	_, err = b.UpsertAdmissionRule(ctx, &drover.AdmissionRule{Name: "r", When: `Drivr == "x"`})
	code(t, drover.Invalid, err, `admission rule "r": When: 1:1: "Drivr" is no field of a task`)
}

// TestAdmissionLevels: a warning is in the answer, a dry run in a plan and in a test alone, and what counts is what would be
// stored.
func TestAdmissionLevels(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	counted := map[string]int{}
	b.deps.Judged = func(rule, level string) { counted[rule+" "+level]++ }
	j := job("j", drover.JobTypeService)
	b.rule(drover.AdmissionRule{Name: "a", Level: drover.AdmissionWarn, When: `Driver == "fake"`})
	b.rule(drover.AdmissionRule{Name: "b", Level: drover.AdmissionDryRun, Max: map[string]int64{"Count": 2}})
	const warned = `job.group[g].task[t]: admission rule "a" (Driver is "fake")`
	require.Equal(t, warned, b.register(j).Warnings)
	o, err := b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(3)})
	require.NoError(t, err)
	require.Equal(t, warned, o.Warnings)
	three := job("j", drover.JobTypeService)
	three.TaskGroups[0].Count = new(3)
	p, err := b.PlanJob(ctx, three, false)
	require.NoError(t, err)
	require.Equal(t, warned+`; dry run: job.group[g].task[t]: admission rule "b" (Count is 3, the most is 2)`, p.Warnings)
	got, err := b.TestAdmission(ctx, three)
	require.NoError(t, err)
	require.Equal(t, []drover.AdmissionVerdict{
		{Rule: "a", Level: "warn", Group: "g", Task: "t", Reason: `Driver is "fake"`},
		{Rule: "b", Level: "dry-run", Group: "g", Task: "t", Reason: "Count is 3, the most is 2"},
	}, got)

	b.rule(drover.AdmissionRule{Name: "b", Max: map[string]int64{"Count": 2}})
	_, err = b.RegisterJob(ctx, drover.RegisterRequest{Job: job("j", drover.JobTypeService), PreserveCounts: true})
	code(t, drover.Invalid, err, "Count is 3, the most is 2")
	for i := range 20 {
		three.TaskGroups[0].Tasks = append(three.TaskGroups[0].Tasks, &drover.Task{Name: "t" + string(rune('a'+i)), Driver: "fake"})
	}
	_, err = b.RegisterJob(ctx, drover.RegisterRequest{Job: three})
	code(t, drover.Invalid, err, "and 5 more")
	require.NoError(t, b.ValidateJob(ctx, j))
	require.Equal(t, map[string]int{"a warn": 4, "b dry-run": 1, "b enforce": 2}, counted, "once a job, and not of plans and tests")
}

// TestAdmissionKnowsWhoAsks: by the policies and roles of the request's token. A launch at its time was judged at the registration.
func TestAdmissionKnowsWhoAsks(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.rule(drover.AdmissionRule{Name: "r", When: `Driver == "fake" and ("ci" in TokenPolicies or "teacher" in TokenRoles)`})
	roles := []*acl.Role{
		{ID: "teacher", Name: "teacher"},
		{ID: "builders", Name: "builders", Policies: []*acl.RolePolicy{{Name: "ci"}}},
		{ID: "guests", Name: "guests"},
	}
	b.write(&command.UpsertACLPolicies{Policies: []*acl.Policy{{Name: "ci"}}}, &command.UpsertACLRoles{Roles: roles})
	param := job("p", drover.JobTypeBatch)
	param.ParameterizedJob = &drover.ParameterizedJobConfig{}
	_, err := b.RegisterJob(by(ctx, []string{"ops"}), drover.RegisterRequest{Job: param})
	require.NoError(t, err)
	_, err = b.DispatchJob(by(ctx, []string{"ops"}), drover.DispatchRequest{Namespace: "default", ID: "p"})
	require.NoError(t, err)
	_, err = b.DispatchJob(ctx, drover.DispatchRequest{Namespace: "default", ID: "p"})
	require.NoError(t, err, "nobody asked")
	_, err = b.RegisterJob(by(ctx, nil, "guests", "gone"), drover.RegisterRequest{Job: job("y", drover.JobTypeBatch)})
	require.NoError(t, err)
	for _, other := range []context.Context{by(ctx, []string{"ci"}), by(ctx, nil, "teacher"), by(ctx, nil, "builders")} {
		_, err = b.DispatchJob(other, drover.DispatchRequest{Namespace: "default", ID: "p"})
		code(t, drover.Invalid, err, `admission rule "r"`)
		_, err = b.RegisterJob(other, drover.RegisterRequest{Job: job("x", drover.JobTypeBatch)})
		code(t, drover.Invalid, err, `admission rule "r"`)
	}
}

// write has the state have something.
func (b *bundle) write(list ...command.Command) {
	b.t.Helper()
	for _, c := range list {
		_, _, err := b.log.Propose(b.t.Context(), c)
		require.NoError(b.t, err)
	}
}

// TestAdmissionSeesBehindVolumes: the folders of all volumes that a request could get, of nodes' configurations and of the job's
// namespace, in its node pool. A volume that is not there yet may be any.
func TestAdmissionSeesBehindVolumes(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.rule(drover.AdmissionRule{Name: "etc", When: `any HostVolumePaths as p { p matches "^/etc" }`})
	node := func(id, pool, path string) *command.RegisterNode {
		return &command.RegisterNode{Node: &drover.Node{
			ID: id, SecretID: id, NodePool: pool, HostVolumes: map[string]*drover.HostVolumeInfo{"data": {Path: path}},
		}}
	}
	register := func(source string, perAlloc bool) error {
		j := job("j", drover.JobTypeService)
		g := j.TaskGroups[0]
		g.Volumes = map[string]*drover.VolumeRequest{"v": {Name: "v", Type: "host", Source: source, PerAlloc: perAlloc}}
		g.Tasks[0].VolumeMounts = []*drover.VolumeMount{{Volume: "v", Destination: "/d"}}
		_, err := b.RegisterJob(ctx, drover.RegisterRequest{Job: j})
		return err
	}
	b.write(node("n1", "default", "/srv/data"), node("n2", "other", "/etc"))
	require.NoError(t, register("data", false), "the other pool's nodes run nothing of it")
	code(t, drover.Invalid, register("made", false), `admission rule "etc" (HostVolumePaths is not known before the task starts ("made"))`)
	tx := b.store.Begin(b.log.index + 1)
	b.log.index++
	tx.PutHostVolume(&volume.HostVolume{ID: "1", Name: "made", Namespace: "default", NodeID: "n1", NodePool: "default", HostPath: "/srv/made"})
	tx.PutHostVolume(&volume.HostVolume{ID: "2", Name: "each[0]", Namespace: "default", NodeID: "n1", NodePool: "default", HostPath: "/etc/x"})
	tx.PutHostVolume(&volume.HostVolume{ID: "3", Name: "made", Namespace: "other", NodeID: "n1", NodePool: "default", HostPath: "/etc"})
	tx.Commit()
	require.NoError(t, register("made", false))
	code(t, drover.Invalid, register("each", true), `admission rule "etc" (HostVolumePaths is ["/etc/x"])`)
	static := node("n4", "default", "/srv/data")
	static.Node.HostVolumes = map[string]*drover.HostVolumeInfo{"own[0]": {Path: "/etc/own"}, "fine[0]": {Path: "/srv/fine"}}
	b.write(static)
	code(t, drover.Invalid, register("own", true), `admission rule "etc" (HostVolumePaths is ["/etc/own"])`)
	require.NoError(t, register("fine", true))
	b.write(node("n3", "default", "/etc/../etc/shadow"))
	code(t, drover.Invalid, register("data", false), `"/etc/shadow"`)
}
