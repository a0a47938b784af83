package docker

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/image"
)

// store is a registry of this process, with basic authentication if there is a password.
type store struct {
	host      string
	manifests atomic.Int32 // times that one was asked for
	silent    atomic.Bool  // blobs are never sent
}

func newStore(t *testing.T, password string) *store {
	t.Helper()
	s, quit := &store{}, make(chan struct{})
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); password != "" && got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "/manifests/") {
			s.manifests.Add(1)
		}
		if s.silent.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			<-quit // dockerd keeps the connection of a pull that it gave up
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(quit) })
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

// push makes an image of one program, and returns its reference.
func (s *store) push(t *testing.T, repo, password string) string {
	t.Helper()
	ref, err := name.ParseReference(s.host + "/" + repo + ":1")
	require.NoError(t, err)
	require.NoError(
		t,
		remote.Write(ref, program(t), remote.WithAuth(&authn.Basic{Username: "me", Password: password}), remote.WithContext(t.Context())),
	)
	return ref.String()
}

// program is an image of one program, like no other.
func program(t *testing.T) v1.Image {
	t.Helper()
	program, err := exec.LookPath("busybox")
	require.NoError(t, err)
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for n, content := range map[string][]byte{"true": data, "unique": []byte(id.Random{}.New())} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: n, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err = w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	img, err := mutate.AppendLayers(
		mutate.MediaType(empty.Image, types.DockerManifestSchema2),
		static.NewLayer(archive.Bytes(), types.DockerUncompressedLayer),
	)
	require.NoError(t, err)
	img, err = mutate.Config(img, v1.Config{Cmd: []string{"/true"}})
	require.NoError(t, err)
	file, err := img.ConfigFile()
	require.NoError(t, err)
	file.OS, file.Architecture = "linux", "amd64"
	img, err = mutate.ConfigFile(img, file)
	require.NoError(t, err)
	return img
}

// TestPullIsOneForMany, and the image is removed when nobody has used it for the delay.
func TestPullIsOneForMany(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	ref := s.push(t, "one", "")
	pushed := s.manifests.Load()
	b := newBench(t, func(c *Config) { c.ImageDelay = 50 * time.Millisecond })
	var wg sync.WaitGroup
	for range 6 {
		spec := b.spec(t, map[string]any{"image": ref})
		wg.Go(func() { // ends with its task
			h, err := b.Start(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			exit, err := h.Wait(t.Context())
			if err != nil || exit.Code != 0 {
				t.Errorf("%v, %v", exit, err)
			}
			if err := h.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, s.manifests.Load()-pushed, int32(3), "docker asks for a digest, then for what it is of")
	require.Eventually(t, func() bool {
		_, err := b.images.Find(t.Context(), ref)
		return drover.CodeOf(err) == drover.NotFound
	}, patience, tick)
	_, err := b.images.Find(t.Context(), busybox)
	require.NoError(t, err, "what we did not pull stays")
}

// TestOurNamesOfAnImageAreRemoved, all of them; a name that somebody else gave it keeps the image.
func TestOurNamesOfAnImageAreRemoved(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	refs := []string{s.push(t, "names", ""), s.host + "/names:2"}
	pushed, err := name.ParseReference(refs[0])
	require.NoError(t, err)
	img, err := remote.Image(pushed)
	require.NoError(t, err)
	second, err := name.NewTag(refs[1])
	require.NoError(t, err)
	require.NoError(t, remote.Tag(second, img))
	theirs := "drover-test/theirs:" + id.Random{}.New()
	docker := func(args ...string) {
		t.Helper()
		out, err := exec.Command("docker", append([]string{"-H", endpoint}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	b := newBench(t, func(c *Config) { c.ImageDelay = 50 * time.Millisecond })
	for _, tagged := range []bool{true, false} {
		one, two := b.run(t, b.spec(t, map[string]any{"image": refs[0]})), b.run(t, b.spec(t, map[string]any{"image": refs[1]}))
		image := one.box.image
		require.Equal(t, image, two.box.image)
		if tagged {
			docker("tag", image, theirs)
		}
		require.NoError(t, one.Destroy(t.Context()))
		require.NoError(t, two.Destroy(t.Context()))
		names := refs
		if !tagged {
			names = append(names, image)
		}
		for _, n := range names {
			require.Eventually(t, func() bool {
				_, err := b.images.Find(t.Context(), n)
				return drover.CodeOf(err) == drover.NotFound
			}, patience, tick, n)
		}
		if tagged {
			docker("rmi", theirs) // fails if it went with ours
		}
	}
}

// TestImagesOfAnEarlierAgentAreRemoved when no task is left that uses them.
func TestImagesOfAnEarlierAgentAreRemoved(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	ref := s.push(t, "earlier", "")
	b := newBench(t, func(c *Config) { c.ImageDelay = time.Hour })
	h := b.run(t, b.spec(t, map[string]any{"image": ref}))
	_, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Destroy(t.Context()))
	require.NoError(t, b.Close()) // its timer is gone with it
	b.cfg.ImageDelay = time.Millisecond
	later := b.restart(t)
	_, err = later.images.Find(t.Context(), ref)
	require.NoError(t, err)
	later.Restored(t.Context())
	require.Eventually(t, func() bool {
		_, err := later.images.Find(t.Context(), ref)
		return drover.CodeOf(err) == drover.NotFound
	}, patience, tick)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(later.cfg.Owner, "docker-images.json"))
		return err == nil && string(text) == "{}"
	}, patience, tick)
}

func TestPullErrorsSayWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	open, closed := newStore(t, ""), newStore(t, "secret")
	private := closed.push(t, "private", "secret")
	b := newBench(t)
	for _, c := range []struct {
		image, password, want string
		recoverable           bool
	}{
		{open.host + "/no/such:1", "", "no/such", false},
		{private, "", "no basic auth", false},
		{private, "wrong", "pulling", false},
		{"127.0.0.1:1/x:1", "", "connection refused", true},
	} {
		config := map[string]any{"image": c.image}
		if c.password != "" {
			config["auth"] = map[string]any{"username": "me", "password": c.password, "server_address": closed.host}
		}
		_, err := b.Start(t.Context(), b.spec(t, config))
		require.ErrorContains(t, err, c.want)
		var start *driver.StartError
		require.ErrorAs(t, err, &start)
		require.Equal(t, c.recoverable, start.Recoverable, "%v", err)
	}
	h := b.run(t, b.spec(t, map[string]any{"image": private, "auth": []any{map[string]any{"username": "me", "password": "secret"}}}))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	before := closed.manifests.Load()
	again := b.run(
		t,
		b.spec(t, map[string]any{"image": private, "force_pull": true, "auth": []any{map[string]any{"username": "me", "password": "secret"}}}),
	)
	_, err = again.Wait(t.Context())
	require.NoError(t, err)
	require.Greater(t, closed.manifests.Load(), before)
	require.NoError(t, h.Destroy(t.Context()))
	require.NoError(t, again.Destroy(t.Context()))
}

// TestPullsAreTold to all who wait, with the progress now and then.
func TestPullsAreTold(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	b := newBench(t)
	spec := b.spec(t, map[string]any{"image": s.push(t, "told", "")})
	var told []string
	spec.Tell = func(text string) { told = append(told, text) }
	_, err := b.run(t, spec).Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"Downloading image " + spec.Config["image"].(string)}, told)
}

// TestPullThatStops ends after the quiet time, and can be tried again.
func TestPullThatStops(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	ref := s.push(t, "slow", "")
	s.silent.Store(true)
	b := newBench(t, func(c *Config) { c.PullQuiet = 500 * time.Millisecond })
	started := clock.Wall{}.Now()
	_, err := b.Start(t.Context(), b.spec(t, map[string]any{"image": ref}))
	require.ErrorContains(t, err, "sends nothing any more")
	require.Less(t, clock.Wall{}.Now().Sub(started), patience)
	var start *driver.StartError
	require.ErrorAs(t, err, &start)
	require.True(t, start.Recoverable)
}

func TestLoadFromAnArchive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, map[string]any{"image": busybox, "load": "local/image.tar", "command": "echo", "args": []any{"loaded"}})
	out, err := exec.Command("docker", "-H", endpoint, "save", "-o", filepath.Join(spec.Dirs.Local, "image.tar"), busybox).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "loaded\n", b.logged(t, spec))
	for want, file := range map[string]string{"no such file": "local/none.tar", "escapes": "../../../../etc/passwd"} {
		bad := b.spec(t, map[string]any{"load": file})
		_, err := b.Start(t.Context(), bad)
		require.ErrorContains(t, err, want)
	}
	other := b.spec(t, map[string]any{"image": "drover-test/other:1", "load": "local/image.tar"})
	require.NoError(t, os.Link(filepath.Join(spec.Dirs.Local, "image.tar"), filepath.Join(other.Dirs.Local, "image.tar")))
	_, err = b.Start(t.Context(), other)
	require.ErrorContains(t, err, "does not hold drover-test/other:1")
	require.ErrorContains(t, err, "it has "+busybox)
}

// TestLoadTakesNobodysName: an archive that says it is an image which others run becomes one of the task's own.
func TestLoadTakesNobodysName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	img := program(t)
	own, err := img.ConfigName()
	require.NoError(t, err)
	victim, err := b.docker.ImageInspect(t.Context(), bare)
	require.NoError(t, err)
	spec := b.spec(t, map[string]any{"image": bare, "load": "local/image.tar", "command": "/true"})
	tag, err := name.NewTag(bare)
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(filepath.Join(spec.Dirs.Local, "image.tar"), tag, img))
	b.logged(t, spec)
	after, err := b.docker.ImageInspect(t.Context(), bare)
	require.NoError(t, err)
	require.Equal(t, victim.ID, after.ID, "others have what they had")
	loaded, err := b.docker.ImageInspect(t.Context(), images.LoadedName+own.Hex)
	require.NoError(t, err)
	require.Equal(t, own.String(), loaded.ID, "the task has what it brought")
}

// TestSandboxesTakeTheDaemonsImages, a name that no registry answers for.
func TestSandboxesTakeTheDaemonsImages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref := "127.0.0.1:1/local" + id.Random{}.New()[:8] + ":1"
	out, err := exec.Command("docker", "-H", endpoint, "tag", busybox, ref).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Cleanup(func() {
		out, err := exec.Command("docker", "-H", endpoint, "rmi", ref).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	s := image.NewStore(image.Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Local: b})
	r, err := s.Prepare(t.Context(), image.Request{Ref: ref})
	require.NoError(t, err)
	require.Contains(t, r.Config.Env, "IMAGE=busybox")
	require.FileExists(t, filepath.Join(r.Lowers[1], "bin", "busybox"))
	r.Release()
}
