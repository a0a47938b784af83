package intake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/tenancy"
)

// TestANamespaceRestrictsItsJobs: at registration, plan and validation, and for jobs that were registered before, at all by which
// something new of them would run.
func TestANamespaceRestrictsItsJobs(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.propose(&command.UpsertNodePools{Pools: []*drover.NodePool{{Name: "prod"}}})
	restrict := func(ns tenancy.Namespace) {
		t.Helper()
		ns.Name = drover.DefaultNamespace
		_, err := b.UpsertNamespace(ctx, &ns)
		require.NoError(t, err)
	}
	j := job("j", drover.JobTypeService)
	b.register(j)
	scaled := 2
	_, err := b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: &scaled})
	require.NoError(t, err)
	param := job("p", drover.JobTypeBatch)
	param.ParameterizedJob = &drover.ParameterizedJobConfig{}
	b.register(param)
	periodic := job("per", drover.JobTypeBatch)
	periodic.Periodic = &drover.PeriodicConfig{Spec: "@daily"}
	b.register(periodic)

	driver := j.TaskGroups[0].Tasks[0].Driver
	restrict(tenancy.Namespace{Capabilities: &tenancy.NamespaceCapabilities{DisabledTaskDrivers: []string{driver}}})
	refused := func(_ drover.Outcome, err error) {
		t.Helper()
		code(t, drover.Invalid, err, `used task driver "`+driver+`" is not allowed in namespace "default"`)
	}
	refused(b.RegisterJob(ctx, drover.RegisterRequest{Job: j}))
	refused(drover.Outcome{}, b.ValidateJob(ctx, j))
	_, err = b.PlanJob(ctx, j, false)
	refused(drover.Outcome{}, err)
	refused(b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 0}))
	refused(b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(3)}))
	refused(b.DispatchJob(ctx, drover.DispatchRequest{Namespace: "default", ID: "p"}))
	refused(b.ForcePeriodic(ctx, "default", "per"))
	_, err = b.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: "default", ID: "p"})
	require.NoError(t, err, "what is refused can be stopped")

	restrict(tenancy.Namespace{NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Default: "prod", Allowed: []string{}}})
	b.register(j)
	require.Equal(t, "prod", b.job("j").NodePool, "the namespace's default pool")
	j.NodePool = "default"
	_, err = b.RegisterJob(ctx, drover.RegisterRequest{Job: j})
	code(t, drover.Invalid, err, `namespace "default" does not allow jobs to use node pool "default"`)
	_, err = b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "n", NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Default: "nowhere"}})
	code(t, drover.Invalid, err, `nonexistent node pool "nowhere"`)
}

// TestANamespaceRestrictsImages: also of versions and parents that were registered before it did.
func TestANamespaceRestrictsImages(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	withImage := func(id, image string) *drover.Job {
		j := job(id, drover.JobTypeService)
		j.TaskGroups[0].Tasks[0].Driver, j.TaskGroups[0].Tasks[0].Config = "docker", map[string]any{"image": image}
		return j
	}
	const pinned = "ghcr.io/acme/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	b.register(withImage("j", "evil.io/x"))
	param := withImage("p", "ghcr.io/acme/${NOMAD_META_image}")
	param.Type, param.ParameterizedJob = drover.JobTypeBatch, &drover.ParameterizedJobConfig{MetaRequired: []string{"image"}}
	b.register(param)
	_, err := b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "default", Images: &tenancy.NamespaceImages{Pin: "maybe"}})
	code(t, drover.Invalid, err, `namespace "default": Images.Pin: "maybe" is neither empty, nor "require", nor "resolve"`)
	_, err = b.UpsertNamespace(ctx, &tenancy.Namespace{
		Name: "default", Images: &tenancy.NamespaceImages{Registries: []string{"ghcr.io/acme"}, Pin: tenancy.PinRequire},
	})
	require.NoError(t, err)

	const evil = `"evil.io/x" has no digest`
	_, err = b.PlanJob(ctx, withImage("j", "evil.io/x"), false)
	code(t, drover.Invalid, err, evil)
	_, err = b.RegisterJob(ctx, drover.RegisterRequest{Job: withImage("j", "evil.io/x"+pinned[len("ghcr.io/acme/web"):])})
	code(t, drover.Invalid, err, `comes from evil.io/x, which is not among the registries ["ghcr.io/acme"] (namespace "default")`)
	_, err = b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(3)})
	code(t, drover.Invalid, err, evil)
	_, err = b.DispatchJob(ctx, drover.DispatchRequest{Namespace: "default", ID: "p", Meta: map[string]string{"image": "x"}})
	code(t, drover.Invalid, err, "cannot be interpolated where images are restricted")
	b.register(withImage("j", pinned))
	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: 0})
	code(t, drover.Invalid, err, evil)
}
