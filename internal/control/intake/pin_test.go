package intake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/registry"
	"github.com/drover-project/drover/tenancy"
)

// tags is a registry's answer to each name.
type tags struct {
	digest map[string]string
	asked  []registry.Account
	err    error
}

func (r *tags) Resolve(_ context.Context, ref string, a registry.Account) (string, error) {
	r.asked = append(r.asked, a)
	if r.err != nil {
		return "", r.err
	}
	if d, ok := r.digest[ref]; ok {
		return d, nil
	}
	return "", drover.Errorf(drover.NotFound, "image %s: the registry does not have it", ref)
}

const (
	one = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	two = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func withImages(id string, images ...string) *drover.Job {
	j := job(id, drover.JobTypeService)
	first := j.TaskGroups[0].Tasks[0]
	j.TaskGroups[0].Tasks = nil
	for i, image := range images {
		t := *first
		t.Name, t.Driver = t.Name+string(rune('a'+i)), "docker"
		if t.Config = map[string]any{"image": image}; image == "" {
			t.Driver, t.Config = "raw_exec", map[string]any{"command": "true"}
		}
		j.TaskGroups[0].Tasks = append(j.TaskGroups[0].Tasks, &t)
	}
	return j
}

func (b *bundle) images(id string) (list []any) {
	for _, t := range b.job(id).TaskGroups[0].Tasks {
		list = append(list, t.Config["image"])
	}
	return list
}

// TestDigestsAreLookedUpAtRegistration, and at no other time: a tag that moves changes nothing until the job is registered again.
func TestDigestsAreLookedUpAtRegistration(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	r := &tags{digest: map[string]string{"ghcr.io/acme/web:1": one, "redis": two}}
	b.deps.Images = r
	given := withImages("j", "ghcr.io/acme/web:1", "redis", "redis@"+one, "ghcr.io/acme/web:1", "")
	b.register(given)
	require.Empty(t, r.asked, "the namespace does not pin")
	require.Equal(t, "redis", b.images("j")[1])

	_, err := b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "default", Images: &tenancy.NamespaceImages{Pin: tenancy.PinResolve}})
	code(t, drover.Invalid, err, `Images.Pin: "resolve" needs Registries`)
	_, err = b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "default", Images: &tenancy.NamespaceImages{
		Pin: tenancy.PinResolve, Registries: []string{"ghcr.io/acme", "docker.io/library"},
	}})
	require.NoError(t, err)
	_, err = b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(3)})
	code(t, drover.Invalid, err, "it was registered before the namespace pinned images, register the job again")

	b.register(given)
	require.Len(t, r.asked, 2, "each name once")
	want := []any{"ghcr.io/acme/web:1@" + one, "redis@" + two, "redis@" + one, "ghcr.io/acme/web:1@" + one, nil}
	require.Equal(t, want, b.images("j"))
	require.Equal(t, "redis", given.TaskGroups[0].Tasks[1].Config["image"], "the request's job is not changed")
	version := b.job("j").Version
	b.register(given)
	require.Equal(t, version, b.job("j").Version, "the same bytes are the same version")

	r.digest["redis"] = one
	_, err = b.ScaleJob(ctx, drover.ScaleRequest{Namespace: "default", ID: "j", Group: "g", Count: new(3)})
	require.NoError(t, err)
	require.Equal(t, want, b.images("j"))
	plan, err := b.PlanJob(ctx, given, true)
	require.NoError(t, err)
	require.Equal(t, "Edited", plan.Diff.Type)
	require.Equal(t, want, b.images("j"))
	b.register(given)
	require.Equal(t, "redis@"+one, b.images("j")[1])
	_, err = b.RevertJob(ctx, drover.RevertRequest{Namespace: "default", ID: "j", Version: version})
	require.NoError(t, err)
	require.Equal(t, want, b.images("j"), "the bytes of that version")
}

func TestDigestsThatCannotBeLookedUp(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	r := &tags{digest: map[string]string{"docker.io/library/redis:8": one}}
	b.deps.Images = r
	_, err := b.UpsertNamespace(ctx, &tenancy.Namespace{Name: "default", Images: &tenancy.NamespaceImages{
		Pin: tenancy.PinResolve, Registries: []string{"docker.io"},
	}})
	require.NoError(t, err)
	registered := func(j *drover.Job) error {
		_, err := b.RegisterJob(ctx, drover.RegisterRequest{Job: j})
		verr := b.ValidateJob(ctx, j)
		require.Equal(t, err == nil, verr == nil)
		return err
	}
	code(t, drover.Invalid, registered(withImages("j", "redis:9")),
		`job.group[g].task[ta].config.image (namespace "default"): this server cannot find out its digest: image redis:9: the registry`)
	code(t, drover.Invalid, registered(withImages("j", "evil.io/x")), "comes from evil.io/x, which is not among the registries")
	require.Len(t, r.asked, 2, "a registry that is not listed is not asked")
	r.err = drover.Errorf(drover.Unavailable, "image redis: reaching the registry: no route to host")
	code(t, drover.Unavailable, registered(withImages("j", "redis:8")), "write the image with its digest, as in redis:8@sha256:…")
	code(t, drover.Invalid, registered(withImages("j", "${NOMAD_META_image}")), "cannot be interpolated")
	r.err = nil

	for _, auth := range []any{
		map[string]any{"username": "me", "password": "p"},
		[]map[string]any{{"username": "me", "password": "p"}},
		[]any{map[string]any{"username": "me", "password": "p"}},
	} {
		j := withImages("j", "docker.io/library/redis:8")
		j.TaskGroups[0].Tasks[0].Config["auth"] = auth
		require.NoError(t, registered(j))
		require.Equal(t, registry.Account{Username: "me", Password: "p"}, r.asked[len(r.asked)-1])
	}
	j := withImages("j", "docker.io/library/redis:8")
	j.TaskGroups[0].Tasks[0].Config["auth"] = map[string]any{"username": "me", "password": "${PASSWORD}"}
	code(t, drover.Invalid, registered(j), "config.auth: it cannot be interpolated")
}

// drips is a registry that takes its time for each answer.
type drips struct{ asked int }

func (d *drips) Resolve(ctx context.Context, ref string, _ registry.Account) (string, error) {
	d.asked++
	if !clock.Sleep(ctx, clock.Wall{}, 19*time.Second) {
		return "", drover.Errorf(drover.Unavailable, "image %s: reaching the registry: %w", ref, context.Cause(ctx))
	}
	return one, nil
}

// TestARegistryThatDrips holds no registration open for longer than a minute, however many images the job has.
func TestARegistryThatDrips(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bundleIn(t)
		d := &drips{}
		b.deps.Images = d
		_, err := b.UpsertNamespace(t.Context(), &tenancy.Namespace{Name: "default", Images: &tenancy.NamespaceImages{
			Pin: tenancy.PinResolve, Registries: []string{"docker.io"},
		}})
		require.NoError(t, err)
		images := make([]string, 26)
		for i := range images {
			images[i] = "docker.io/library/i" + string(rune('a'+i))
		}
		began := time.Now()
		_, err = b.RegisterJob(t.Context(), drover.RegisterRequest{Job: withImages("j", images...)})
		code(t, drover.Unavailable, err, "all images of the job may take 1m0s, and 3 were found out in it: image docker.io/library/id:")
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, 4, d.asked)
	})
}
