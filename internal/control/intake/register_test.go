package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/tenancy"
)

func TestRegister(t *testing.T) {
	b := setup(t)
	given := job("j", drover.JobTypeService)
	o := b.register(given)
	require.Empty(t, given.Namespace, "the caller's job is not changed")
	j := b.job("j")
	require.Equal(t, 100, j.TaskGroups[0].Tasks[0].Resources.CPU)
	require.Equal(t, o.Index, o.JobModifyIndex)
	e := b.store.Snapshot().Evaluation(o.EvalID)
	require.Equal(t, drover.TriggerJobRegister, e.TriggeredBy)
	require.Equal(t, drover.EvalPending, e.Status)
	require.Equal(t, o.JobModifyIndex, e.JobModifyIndex)

	again := b.register(given)
	require.Equal(t, o.JobModifyIndex, again.JobModifyIndex, "nothing changed")
	require.NotEqual(t, o.EvalID, again.EvalID)
}

func TestRegisterRefuses(t *testing.T) {
	b := setup(t)
	b.register(job("j", drover.JobTypeService))
	ctx := t.Context()
	refuse := func(want drover.Code, text string, r drover.RegisterRequest) {
		t.Helper()
		index := b.store.Index()
		_, err := b.RegisterJob(ctx, r)
		code(t, want, err, text)
		if want == drover.Invalid {
			require.Equal(t, index, b.store.Index(), "no state change")
		}
	}
	refuse(drover.Invalid, "missing job", drover.RegisterRequest{})
	refuse(drover.Invalid, "job.Priority", drover.RegisterRequest{Job: &drover.Job{ID: "x", Priority: 1000}})
	refuse(drover.Invalid, `type "service" to "batch"`, drover.RegisterRequest{Job: job("j", drover.JobTypeBatch)})
	nowhere := job("x", drover.JobTypeBatch)
	nowhere.Namespace = "nowhere"
	refuse(drover.Invalid, `nonexistent namespace "nowhere"`, drover.RegisterRequest{Job: nowhere})
	dry := job("x", drover.JobTypeBatch)
	dry.NodePool = "dry"
	refuse(drover.Invalid, `nonexistent node pool "dry"`, drover.RegisterRequest{Job: dry})
	cron := job("x", drover.JobTypeBatch)
	cron.Periodic = &drover.PeriodicConfig{Spec: "every tuesday"}
	refuse(drover.Invalid, "job.Periodic.Spec", drover.RegisterRequest{Job: cron})
	refuse(drover.Conflict, "Enforcing job modify index 0", drover.RegisterRequest{Job: job("j", drover.JobTypeService), EnforceIndex: true})
	_, _, err := b.SetSchedulerConfig(ctx, drover.SchedulerConfiguration{RejectJobRegistration: true}, false)
	require.NoError(t, err)
	refuse(drover.Forbidden, "disabled", drover.RegisterRequest{Job: job("x", drover.JobTypeBatch)})
}

func TestDeregisterAndEvaluate(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	_, err := b.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: "default", ID: "j"})
	code(t, drover.NotFound, err, "job not found")
	_, err = b.EvaluateJob(ctx, "default", "j", false)
	code(t, drover.NotFound, err, "job not found")
	b.register(job("j", drover.JobTypeService))
	o, err := b.EvaluateJob(ctx, "default", "j", true)
	require.NoError(t, err)
	require.NotEmpty(t, o.EvalID)
	o, err = b.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: "default", ID: "j", Purge: true, EvalPriority: 70})
	require.NoError(t, err)
	require.Nil(t, b.job("j"))
	require.Equal(t, 70, b.store.Snapshot().Evaluation(o.EvalID).Priority)
}

func TestScaleRevertStable(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	j := job("j", drover.JobTypeBatch)
	j.TaskGroups[0].Scaling = &drover.ScalingPolicy{Max: new(int64(5)), Enabled: new(true), Type: "horizontal"}
	b.register(j)
	scale := func(n int) error {
		_, err := b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: &n})
		return err
	}
	require.NoError(t, scale(4))
	require.Equal(t, 4, *b.job("j").TaskGroups[0].Count)
	require.EqualValues(t, 1, b.job("j").Version)
	code(t, drover.Invalid, scale(6), "6 > 5")
	code(t, drover.Invalid, scale(-1), "negative")
	_, err := b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "x", Count: new(1)})
	code(t, drover.Invalid, err, `"x"`)

	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 1})
	code(t, drover.Invalid, err, "current version")
	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 7})
	code(t, drover.NotFound, err, "version 7")
	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 0, EnforcePriorVersion: new(uint64(3))})
	code(t, drover.Conflict, err, "enforcing version 3")
	o, err := b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 0})
	require.NoError(t, err)
	require.EqualValues(t, 0, *o.RevertedJobVersion)
	require.Equal(t, 1, *b.job("j").TaskGroups[0].Count)
	require.EqualValues(t, 2, b.job("j").Version)
	_, err = b.SetJobStable(ctx, "default", "j", 2, true)
	require.NoError(t, err)
	require.True(t, b.job("j").Stable)

	_, err = b.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: "default", ID: "j"})
	require.NoError(t, err)
	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 2})
	require.NoError(t, err)
	require.False(t, b.job("j").Stop, "a revert to a version that ran runs it")
	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 3})
	require.NoError(t, err)
	require.True(t, b.job("j").Stop, "a revert to a stop stops")
	require.EqualValues(t, 5, b.job("j").Version)
}

func TestDispatch(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	j := job("p", drover.JobTypeBatch)
	j.ParameterizedJob = &drover.ParameterizedJobConfig{Payload: "required", MetaRequired: []string{"who"}, MetaOptional: []string{"why"}}
	o := b.register(j)
	require.Empty(t, o.EvalID, "a template is not evaluated")
	req := drover.DispatchRequest{Namespace: "default", ID: "p", Payload: []byte("x"), Meta: map[string]string{"who": "me"}}
	refuse := func(want drover.Code, text string, change func(*drover.DispatchRequest)) {
		t.Helper()
		r := req
		change(&r)
		_, err := b.DispatchJob(ctx, r)
		code(t, want, err, text)
	}
	refuse(drover.Invalid, "Payload is not provided", func(r *drover.DispatchRequest) { r.Payload = nil })
	refuse(drover.TooLarge, "maximum size", func(r *drover.DispatchRequest) { r.Payload = make([]byte, MaxPayload+1) })
	refuse(drover.Invalid, "required meta keys: [who]", func(r *drover.DispatchRequest) { r.Meta = nil })
	refuse(drover.Invalid, "unpermitted metadata keys: [x]", func(r *drover.DispatchRequest) {
		r.Meta = map[string]string{"who": "", "x": ""}
	})
	refuse(drover.NotFound, "job not found", func(r *drover.DispatchRequest) { r.ID = "q" })
	refuse(drover.Invalid, "IdPrefixTemplate", func(r *drover.DispatchRequest) { r.IDPrefixTemplate = "a\x00b" })
	refuse(drover.Invalid, "IdPrefixTemplate", func(r *drover.DispatchRequest) { r.IDPrefixTemplate = strings.Repeat("a", 1000) })

	req.IdempotencyToken, req.IDPrefixTemplate = "once", "pre"
	first, err := b.DispatchJob(ctx, req)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(first.DispatchedJobID, "p/dispatch-pre-"))
	second, err := b.DispatchJob(ctx, req)
	require.NoError(t, err)
	require.Equal(t, first.DispatchedJobID, second.DispatchedJobID)
	require.Equal(t, first.EvalID, second.EvalID)
	child := b.job(first.DispatchedJobID)
	require.Equal(t, []byte("x"), child.Payload)
	require.Equal(t, "me", child.Meta["who"])
	require.Equal(t, "p", child.ParentID)
	require.False(t, child.Parameterized())
	refuse(drover.Invalid, "not a parameterized job", func(r *drover.DispatchRequest) { r.ID = first.DispatchedJobID })
}

func TestForcePeriodic(t *testing.T) {
	b := setup(t)
	j := job("p", drover.JobTypeBatch)
	j.Periodic = &drover.PeriodicConfig{Spec: "0 0 1 1 *"}
	b.register(j)
	_, err := b.ForcePeriodic(t.Context(), "default", "p")
	require.NoError(t, err)
	var children []*drover.Job
	for c := range b.store.Snapshot().Jobs("default", "p/periodic-") {
		children = append(children, c)
	}
	require.Len(t, children, 1)
	require.False(t, children[0].Periodical())
}

func TestClaimAndRelease(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	j := job("env", drover.JobTypeService)
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 2}
	b.register(j)
	b.placed("a1", "env", "n")
	b.placed("a2", "env", "n")
	results, err := b.ClaimRunners(ctx, []command.RunnerClaim{
		{AllocID: "a1", Claim: drover.Claim{RunnerID: "r1"}},
		{AllocID: "a1", Claim: drover.Claim{RunnerID: "r2"}},
		{AllocID: "zz", Claim: drover.Claim{RunnerID: "r3"}},
		{AllocID: "a2", Claim: drover.Claim{RunnerID: "r4"}},
	})
	require.NoError(t, err)
	require.NoError(t, results[0].Err)
	require.Equal(t, drover.Conflict, drover.CodeOf(results[1].Err))
	require.Equal(t, drover.NotFound, drover.CodeOf(results[2].Err))
	require.NoError(t, results[3].Err)
	evals := b.log.last.(*command.ClaimRunners).Evals
	require.Len(t, evals, 1, "one for each pool")
	require.Equal(t, drover.TriggerRunnerClaim, evals[0].TriggeredBy)

	_, err = b.ReleaseRunners(ctx, []string{"a1", "zz"}, "released")
	require.NoError(t, err)
	require.Equal(t, drover.AllocDesiredStop, b.store.Snapshot().Allocation("a1").DesiredStatus)
	index := b.store.Index()
	_, err = b.ReleaseRunners(ctx, []string{"a1"}, "again")
	require.NoError(t, err)
	require.Equal(t, index, b.store.Index())
}

func TestNodes(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	for _, f := range []func() error{
		func() error { _, err := b.SetEligibility(ctx, "n", drover.NodeEligible); return err },
		func() error { _, err := b.DrainNode(ctx, drover.DrainRequest{NodeID: "n"}); return err },
		func() error { _, err := b.EvaluateNode(ctx, "n"); return err },
		func() error { _, err := b.PurgeNode(ctx, "n"); return err },
	} {
		code(t, drover.NotFound, f(), "node not found")
	}
	_, err := b.StopAllocation(ctx, "a", false, false)
	code(t, drover.NotFound, err, "alloc not found")
	b.propose(&command.RegisterNode{Node: &drover.Node{ID: "n", Status: drover.NodeStatusReady, SecretID: "s"}})
	b.register(job("j", drover.JobTypeService))
	sys := b.register(job("sys", drover.JobTypeSystem))
	require.NotEmpty(t, sys.EvalID)
	b.placed("a", "j", "n")
	o, err := b.EvaluateNode(ctx, "n")
	require.NoError(t, err)
	require.Len(t, o.EvalIDs, 2, "the job on it, and the system job")
	o, err = b.StopAllocation(ctx, "a", true, false)
	require.NoError(t, err)
	require.NotEmpty(t, o.EvalID)
	require.True(t, *b.store.Snapshot().Allocation("a").DesiredTransition.Migrate)
	_, err = b.DrainNode(ctx, drover.DrainRequest{NodeID: "n", Spec: &drover.DrainSpec{Deadline: 10}})
	require.NoError(t, err)
	_, err = b.SetEligibility(ctx, "n", drover.NodeEligible)
	code(t, drover.Conflict, err, "draining")
	_, err = b.DrainNode(ctx, drover.DrainRequest{NodeID: "n", MarkEligible: true})
	require.NoError(t, err)
	require.Equal(t, drover.NodeEligible, b.store.Snapshot().Node("n").SchedulingEligibility)
	o, err = b.PurgeNode(ctx, "n")
	require.NoError(t, err)
	require.NotEmpty(t, o.EvalIDs)
	require.Nil(t, b.store.Snapshot().Node("n"))
}

func TestCluster(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	_, err := b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "a b"})
	code(t, drover.Invalid, err, "invalid name")
	_, err = b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "team"})
	require.NoError(t, err)
	_, err = b.DeleteNamespace(ctx, "team")
	require.NoError(t, err)
	_, err = b.DeleteNamespace(ctx, "team")
	code(t, drover.NotFound, err, "")
	_, err = b.UpsertNodePool(ctx, &drover.NodePool{Name: "gpu a100"})
	code(t, drover.Invalid, err, `invalid name "gpu a100". Must be 1 to 128 letters, digits, '-' or '_'`)
	_, err = b.UpsertNodePool(ctx, &drover.NodePool{Name: "gpu_a-100"}) // Nomad's names of pools have an underscore, too
	require.NoError(t, err)
	_, err = b.DeleteNodePool(ctx, "gpu_a-100")
	require.NoError(t, err)
	_, _, err = b.SetSchedulerConfig(ctx, drover.SchedulerConfiguration{SchedulerAlgorithm: "magic"}, false)
	code(t, drover.Invalid, err, "magic")
	updated, _, err := b.SetSchedulerConfig(ctx, drover.SchedulerConfiguration{ModifyIndex: 12345}, true)
	require.NoError(t, err)
	require.False(t, updated)
	require.NoError(t, b.ReconcileSummaries(ctx))
	code(t, drover.NotImplemented, b.CollectGarbage(ctx), "servers only")
}

func TestScalingIsRemembered(t *testing.T) {
	b := setup(t)
	b.register(job("j", drover.JobTypeBatch))
	ask := drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Message: "only told", Meta: map[string]any{"a": "b"}}
	_, err := b.ScaleJob(t.Context(), ask)
	require.NoError(t, err)
	ask.Message, ask.Count = "more", new(5)
	o, err := b.ScaleJob(t.Context(), ask)
	require.NoError(t, err)
	list := b.store.Snapshot().ScalingEvents("default", "j").ScalingEvents["g"]
	require.Len(t, list, 2)
	require.Equal(t, "more", list[0].Message)
	require.EqualValues(t, 5, *list[0].Count)
	require.EqualValues(t, 1, list[0].PreviousCount)
	require.Equal(t, o.EvalID, *list[0].EvalID)
	require.Nil(t, list[1].Count)
	require.Equal(t, map[string]any{"a": "b"}, list[1].Meta)
}

func TestFaultsOfTheJobAndOfTheStateAreToldTogether(t *testing.T) {
	b := setup(t)
	j := job("j", drover.JobTypeBatch)
	require.NoError(t, b.ValidateJob(t.Context(), j))
	j.Namespace, j.NodePool, j.Priority = "nope", "nowhere", 500
	j.Periodic = &drover.PeriodicConfig{Spec: "now and then"}
	j.Constraints = []*constraint.Constraint{{LTarget: "${attr.v}", Operand: "version", RTarget: "about 3"}}
	j.TaskGroups[0].Tasks[0].Driver = "raw-exec"
	index := b.store.Index()
	_, err := b.RegisterJob(t.Context(), drover.RegisterRequest{Job: j})
	for _, err := range []error{err, b.ValidateJob(t.Context(), j)} {
		for _, want := range []string{
			"job.Namespace", "job.NodePool", "job.Priority", "job.Periodic.Spec", "job.Constraints[0].RTarget",
			`job.group[g].task[t].Driver: no node has the driver "raw-exec" (they have: `, `; did you mean "raw_exec"?`,
		} {
			code(t, drover.Invalid, err, want)
		}
	}
	require.Equal(t, index, b.store.Index())
	b.propose(&command.RegisterNode{Node: &drover.Node{ID: "n", Drivers: map[string]*drover.DriverInfo{"raw-exec": {}}}})
	require.NotContains(t, b.ValidateJob(t.Context(), j).Error(), "raw-exec")
}

func TestSourceIsKeptUpToALimit(t *testing.T) {
	b := setup(t)
	for limit, kept := range map[int]bool{0: false, 9: false, 10: true} {
		b.deps.MaxSource = &limit
		o, err := b.RegisterJob(t.Context(), drover.RegisterRequest{
			Job: job("j", "service"), Submission: &drover.JobSubmission{Source: "job", Format: "hcl2", Variables: "a=1"},
		})
		require.NoError(t, err)
		require.Equal(t, kept, b.log.last.(*command.RegisterJob).Submission != nil, limit)
		require.Equal(t, limit == 9, o.Warnings != "", "switched off, it is not missed")
	}
}

// How many allocations a job may ask for is said by the server's configuration: it is looked at when a job comes, and when it is scaled.
func TestAJobMayAskForSoMany(t *testing.T) {
	b := setup(t)
	for _, c := range []struct {
		limit *int
		count int
		kind  string
		says  string
	}{
		{nil, drover.DefaultMaxCount, "batch", ""},
		{nil, drover.DefaultMaxCount + 1, "batch", "job: asks for 50001 allocations, the limit is 50000 (server.job_max_count)"},
		{new(0), drover.DefaultMaxCount + 1, "service", ""},
		{new(0), drover.MaxGroupCount + 1, "service", "job.group[g].Count: must be from 0 to 1000000"},
		{new(3), 3, "service", ""},
		{new(3), 4, "service", "job: asks for 4 allocations, the limit is 3 (server.job_max_count)"},
		{new(0), 1, "system", ""},
	} {
		b.deps.MaxCount = c.limit
		j := job("j-"+c.kind, c.kind)
		j.TaskGroups[0].Count = &c.count
		_, err := b.RegisterJob(t.Context(), drover.RegisterRequest{Job: j})
		for _, err := range []error{err, b.ValidateJob(t.Context(), j)} {
			if c.says == "" {
				require.NoError(t, err)
				continue
			}
			code(t, drover.Invalid, err, c.says)
		}
	}
	_, err := b.ScaleJob(t.Context(), drover.ScaleRequest{Namespace: "default", ID: "j-batch", Group: "g", Count: new(4)})
	require.NoError(t, err, "there is no limit now")
	b.deps.MaxCount = new(3)
	_, err = b.ScaleJob(t.Context(), drover.ScaleRequest{Namespace: "default", ID: "j-batch", Group: "g", Count: new(5)})
	code(t, drover.Invalid, err, "job: asks for 5 allocations, the limit is 3")
}

// A job that is reverted is made of the old version's text again.
func TestRevertTakesTheSourceAlong(t *testing.T) {
	b := setup(t)
	for _, note := range []string{"old", "new"} {
		j := job("j", "service")
		j.Meta = map[string]string{"note": note}
		_, err := b.RegisterJob(t.Context(), drover.RegisterRequest{Job: j, Submission: &drover.JobSubmission{Source: note, Format: "hcl2"}})
		require.NoError(t, err)
	}
	_, err := b.RevertJob(t.Context(), drover.RevertRequest{Namespace: "default", ID: "j", Version: 0})
	require.NoError(t, err)
	s := b.store.Snapshot()
	for version, source := range []string{"old", "new", "old"} {
		require.Equal(t, source, s.JobSubmission("default", "j", uint64(version)).Source)
	}
}

// A service that names no provider has the one that the servers are told; what is only read to be warned of is not stored.
func TestServicesThatNameNoProvider(t *testing.T) {
	for provider, want := range map[string]string{"": "nomad", "nomad": "nomad", "consul": "consul"} {
		t.Run(provider, func(t *testing.T) {
			b := setup(t)
			b.deps.ServiceProvider = provider
			j := job("j", drover.JobTypeService)
			j.TaskGroups[0].Services = []*service.Service{{Name: "a", Kind: "x"}, {Name: "b", Provider: "nomad"}}
			j.TaskGroups[0].Tasks[0].Services = []*service.Service{{Name: "c"}}
			o := b.register(j)
			g := b.job("j").TaskGroups[0]
			require.Equal(t, want, g.Services[0].Provider)
			require.Equal(t, "nomad", g.Services[1].Provider)
			require.Equal(t, want, g.Tasks[0].Services[0].Provider)
			require.Equal(t, want == "consul", strings.Contains(o.Warnings, "service[c].Provider has no effect"), o.Warnings)
			require.Contains(t, o.Warnings, "service[a].Kind has no effect")
			require.Empty(t, g.Services[0].Kind)
		})
	}
}
