package tenant

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/tenancy"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestRefusedImages(t *testing.T) {
	t.Parallel()
	listed := &tenancy.NamespaceImages{Registries: []string{"docker.io/library", "ghcr.io/acme", "localhost:5000"}}
	pinned := &tenancy.NamespaceImages{Pin: tenancy.PinRequire}
	resolved := &tenancy.NamespaceImages{Pin: tenancy.PinResolve, Registries: []string{"docker.io"}}
	signed := &tenancy.NamespaceImages{SignedBy: []string{"key"}}
	withHost := &tenancy.NamespaceImages{Registries: []string{"host", "index.docker.io"}}
	for _, c := range []struct {
		rule *tenancy.NamespaceImages
		ref  any
		want string
	}{
		{nil, "evil.io/x", ""},
		{&tenancy.NamespaceImages{}, "${anything}", ""},
		{listed, "redis", ""},
		{listed, "redis:8" + digest, ""},
		{listed, "library/redis", ""},
		{listed, "docker.io/redis", ""},
		{listed, "Index.Docker.IO/library/redis", ""},
		{listed, "ghcr.io/acme/a/b:1", ""},
		{listed, "GHCR.io/acme/web", ""},
		{listed, "localhost:5000/x", ""},
		{withHost, "host", ""},
		{withHost, "", ""},
		{withHost, "a/b", ""},
		{pinned, "evil.io/x" + digest, ""},
		{pinned, "host", ""},
		{resolved, "redis:8" + digest, ""},
		{signed, "redis", ""},
		{signed, "host", ""},

		{resolved, "redis:8", "it was registered before"},
		{signed, "./layout", "is no reference"},
		{signed, "sha256:" + strings.Repeat("a", 64), "is no reference"},
		{signed, "${image}", "cannot be interpolated"},
		{listed, "ghcr.io/acme2/web", "comes from ghcr.io/acme2/web"},
		{listed, "ghcr.io/web", "comes from ghcr.io/web"},
		{listed, "acme/redis", "comes from docker.io/acme/redis"},
		{listed, "localhost/x", "comes from localhost/x"},
		{listed, "ghcr.io:8443/acme/web", "comes from ghcr.io:8443/acme/web"},
		{listed, "ghcr.io/acme/../evil/web", "is no reference"},
		{listed, "ghcr.io./acme/web", "is no reference"},
		{listed, "LIBRARY/redis", "is no reference"},
		{listed, "https://ghcr.io/acme/web", "is no reference"},
		{listed, "user@ghcr.io/acme/web", "is no reference"},
		{listed, "ghcr.io/acme/web\nevil", "is no reference"},
		{listed, " redis", "is no reference"},
		{listed, "cafe", "is no reference"}, // it may be an image's id
		{listed, "sha256:" + strings.Repeat("a", 64), "is no reference"},
		{listed, "./layout", "is no reference"},
		{listed, "/images/x.tar", "is no reference"},
		{listed, "${NOMAD_META_image}", "cannot be interpolated"},
		{listed, "ghcr.io/acme/${NOMAD_META_image}", "cannot be interpolated"},
		{listed, 7, "must be a string"},
		{listed, []any{"redis"}, "must be a string"},
		{listed, "host", `"host" is not among`},
		{listed, nil, `"host" is not among`},
		{pinned, "redis:8", "has no digest"},
		{pinned, "redis@sha256:0123", "is no reference"},
		{pinned, "./layout", "is no reference"},
		{pinned, "${image}" + digest, "cannot be interpolated"},
	} {
		task := &drover.Task{Name: "t", Driver: "sandbox", Config: map[string]any{"image": c.ref}}
		why := refusedImage(c.rule, task)
		if c.want == "" {
			require.Empty(t, why, "%v", c.ref)
			continue
		}
		require.Contains(t, why, c.want, "%v", c.ref)
	}
}

// TestWhatTurnsIntoAnImage: other keys by which a node comes to run an image, in tasks that run before and beside the main one.
func TestWhatTurnsIntoAnImage(t *testing.T) {
	t.Parallel()
	ns := &tenancy.Namespace{Name: "dev", Images: &tenancy.NamespaceImages{Registries: []string{"docker.io/library"}}}
	said := func(task *drover.Task) string {
		task.Name, task.Lifecycle = "t", &drover.TaskLifecycle{Hook: "prestart", Sidecar: true}
		group := &drover.TaskGroup{Name: "g", Tasks: []*drover.Task{nil, task}}
		return errors.Join(Refused(ns, &drover.Job{TaskGroups: []*drover.TaskGroup{nil, group}})...).Error()
	}
	require.Contains(t, said(&drover.Task{Driver: "docker", Config: map[string]any{"image": "redis", "load": "x.tar"}}),
		"job.group[g].task[t].config.load: an image of the task's own files")
	require.Contains(t, said(&drover.Task{Driver: "docker", Config: map[string]any{"${NOMAD_META_key}": "evil.io/x"}}),
		`job.group[g].task[t].config."${NOMAD_META_key}": keys cannot be interpolated`)
	require.Contains(t, said(&drover.Task{Driver: "sandbox"}),
		`job.group[g].task[t].config.image: "host" is not among the registries ["docker.io/library"] (namespace "dev")`)
	require.Contains(t, said(&drover.Task{Driver: "podman", Config: map[string]any{"image": "evil.io/x"}}), "evil.io/x")
	require.Empty(t, refusedImage(ns.Images, &drover.Task{Driver: "raw_exec", Config: map[string]any{"command": "true"}}))
}

// TestAllowedImagesAreWhatTheStorePulls compares with the parser of the node's own store of images. What the namespace allows
// comes from the registry and path that it lists there, too, and with the digest that was asked for.
func TestAllowedImagesAreWhatTheStorePulls(t *testing.T) {
	t.Parallel()
	rule := &tenancy.NamespaceImages{Registries: []string{"docker.io/library", "ghcr.io/acme", "localhost"}}
	part := rapid.SampledFrom([]string{
		"docker.io", "index.docker.io", "ghcr.io", "GHCR.IO", "localhost", "acme", "library", "redis", "/", "/", ":", "@", "..", ".", "8",
		"-", "_", digest, "sha256", "%2e", "?",
	})
	rapid.Check(t, func(t *rapid.T) {
		ref := strings.Join(rapid.SliceOfN(part, 1, 7).Draw(t, "parts"), "")
		pinned := rapid.Bool().Draw(t, "pinned")
		rule := *rule
		if pinned {
			rule.Pin = tenancy.PinRequire
		}
		if refusedReference(&rule, ref) != "" {
			return
		}
		parsed, err := name.ParseReference(ref)
		require.NoError(t, err)
		host := strings.ToLower(parsed.Context().RegistryStr())
		full := host + "/" + parsed.Context().RepositoryStr() + "/"
		require.True(t, host == "localhost" || strings.HasPrefix(full, "ghcr.io/acme/") || strings.HasPrefix(full, "index.docker.io/library/"),
			"%s: %s", ref, full)
		if _, ok := parsed.(name.Digest); pinned {
			require.True(t, ok, ref)
		}
	})
}

// TestUnpinned: only what the namespace allows is looked up.
func TestUnpinned(t *testing.T) {
	t.Parallel()
	ns := &tenancy.Namespace{Images: &tenancy.NamespaceImages{Pin: tenancy.PinResolve, Registries: []string{"docker.io/library", "host"}}}
	for ref, want := range map[any]string{
		"redis": "redis", "docker.io/library/redis:8": "docker.io/library/redis:8",
		"redis" + digest: "", "host": "", "evil.io/x": "", "${image}": "", "./x": "", "cafe": "", 7: "",
	} {
		task := &drover.Task{Name: "t", Driver: "sandbox", Config: map[string]any{"image": ref}}
		require.Equal(t, want, Unpinned(ns, task), "%v", ref)
		require.Empty(t, Unpinned(nil, task))
		require.Empty(t, Unpinned(&tenancy.Namespace{Images: &tenancy.NamespaceImages{Pin: tenancy.PinRequire}}, task))
	}
	require.Empty(t, Unpinned(ns, &drover.Task{Driver: "docker", Config: map[string]any{"image": "redis", "${k}": "x"}}))
	require.Empty(t, Unpinned(ns, &drover.Task{Driver: "docker", Config: map[string]any{"image": "redis", "load": "x.tar"}}))
}

func TestCheckImages(t *testing.T) {
	t.Parallel()
	for _, r := range []string{
		"host", "docker.io", "docker.io/library", "localhost", "localhost:5000/a/b", "127.0.0.1:5000", "registry:5000/x",
	} {
		require.NoError(t, Check(&tenancy.Namespace{Images: &tenancy.NamespaceImages{Registries: []string{r}}}, nil), r)
	}
	for _, r := range []string{"", "library", "https://ghcr.io", "ghcr.io/", "ghcr.io/Acme", "ghcr.io/a:1", "*", "ghcr.io/*", "a b.io"} {
		err := Check(&tenancy.Namespace{Name: "n", Images: &tenancy.NamespaceImages{Registries: []string{r}}}, nil)
		require.ErrorContains(t, err, `namespace "n": Images.Registries: "`+r+`" is neither`)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	err := Check(&tenancy.Namespace{Name: "n", Images: &tenancy.NamespaceImages{Registries: make([]string, maxEntries+1)}}, nil)
	require.ErrorContains(t, err, "Images.Registries has 257 entries, the limit is 256")
	err = Check(&tenancy.Namespace{Name: "n", Images: &tenancy.NamespaceImages{Pin: "true"}}, nil)
	require.EqualError(t, err, `namespace "n": Images.Pin: "true" is neither empty, nor "require", nor "resolve"`)
	err = Check(&tenancy.Namespace{Name: "n", Images: &tenancy.NamespaceImages{Pin: "resolve", Registries: []string{"host"}}}, nil)
	require.ErrorContains(t, err, `Images.Pin: "resolve" needs Registries`)
	err = Check(&tenancy.Namespace{Name: "n", Images: &tenancy.NamespaceImages{SignedBy: []string{"key"}}}, nil)
	require.ErrorContains(t, err, `namespace "n": Images.SignedBy: key 1: it is no PEM block`)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	err = Check(&tenancy.Namespace{Name: "n", Images: &tenancy.NamespaceImages{SignedBy: make([]string, maxKeys+1)}}, nil)
	require.ErrorContains(t, err, "Images.SignedBy has 17 keys, the limit is 16")
}
