package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	return NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
}

type entry struct {
	name, link, text string
	kind             byte
	mode             int64
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		if e.mode == 0 {
			e.mode = 0o755
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.text))}))
		_, err := w.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func testImage(t *testing.T, layers ...[]byte) v1.Image {
	t.Helper()
	img := v1.Image(empty.Image)
	for _, data := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		require.NoError(t, err)
		img, err = mutate.AppendLayers(img, l)
		require.NoError(t, err)
	}
	cfg, err := img.ConfigFile()
	require.NoError(t, err)
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture = "linux", "amd64"
	cfg.Config = v1.Config{Env: []string{"A=b"}, Cmd: []string{"/bin/x"}, WorkingDir: "/w", User: "joe"}
	img, err = mutate.ConfigFile(img, cfg)
	require.NoError(t, err)
	return img
}

func layers(t *testing.T) [][]byte {
	t.Helper()
	return [][]byte{
		archive(t, entry{name: "etc/", kind: tar.TypeDir}, entry{name: "etc/passwd", text: "root:x:0:0::/:/bin/sh\njoe:x:7:8::/:/bin/sh\n"},
			entry{name: "etc/group", text: "adm:x:4:joe\njoe:x:8:\n"}, entry{name: "old/a", text: "a"}),
		archive(t, entry{name: "old/.wh.a"}, entry{name: "gone/.wh..wh..opq"}, entry{name: "b", text: "b", mode: 0o4755}),
	}
}

func checkLayers(t *testing.T, f *Rootfs) {
	t.Helper()
	require.Len(t, f.Lowers, 3, "the base layer and two of the image")
	require.Equal(t, Config{Env: []string{"A=b"}, Cmd: []string{"/bin/x"}, WorkDir: "/w", User: "joe"}, f.Config)
	top, bottom := f.Lowers[1], f.Lowers[2]
	info, err := os.Lstat(filepath.Join(top, "old/a"))
	require.NoError(t, err)
	require.Equal(t, os.ModeDevice|os.ModeCharDevice, info.Mode().Type(), "a deletion is a device")
	require.Zero(t, info.Sys().(*syscall.Stat_t).Rdev)
	opaque := make([]byte, 4)
	n, err := syscall.Getxattr(filepath.Join(top, "gone"), "user.overlay.opaque", opaque)
	require.NoError(t, err)
	require.Equal(t, "y", string(opaque[:n]))
	info, err = os.Stat(filepath.Join(top, "b"))
	require.NoError(t, err)
	require.Equal(t, os.ModeSetuid|0o755, info.Mode())
	require.FileExists(t, filepath.Join(bottom, "old/a"))
	uid, gid, groups, err := f.LookupUser("joe")
	require.NoError(t, err)
	require.Equal(t, []uint32{7, 8}, []uint32{uid, gid})
	require.Equal(t, []uint32{4}, groups)
	_, _, _, err = f.LookupUser("jane")
	require.ErrorContains(t, err, `unknown user "jane"`)
	uid, gid, _, err = f.LookupUser("5:adm")
	require.NoError(t, err)
	require.Equal(t, []uint32{5, 4}, []uint32{uid, gid})
}

func TestLayoutAndArchives(t *testing.T) {
	t.Parallel()
	img := testImage(t, layers(t)...)
	dir := t.TempDir()
	lay := filepath.Join(dir, "layout")
	path, err := layout.Write(lay, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendImage(img))
	docker := filepath.Join(dir, "docker.tar")
	ref, err := name.NewTag("x:1")
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(docker, ref, img))
	oci := filepath.Join(dir, "oci.tar")
	writeOCIArchive(t, lay, oci)
	s := newStore(t)
	squeezed := filepath.Join(dir, "docker.tar.gz")
	plain, err := os.ReadFile(docker)
	require.NoError(t, err)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err = w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(squeezed, z.Bytes(), 0o600))
	for _, ref := range []string{lay, docker, oci, squeezed} {
		f, err := s.Prepare(t.Context(), Request{Ref: ref})
		require.NoError(t, err, ref)
		checkLayers(t, f)
		f.Release()
		pulls := 0
		count := func(Progress) { pulls++ }
		again, err := s.Prepare(t.Context(), Request{Ref: ref, Progress: count})
		require.NoError(t, err)
		require.Equal(t, f.Lowers, again.Lowers)
		require.Zero(t, pulls, "it is read once")
		again.Release()
	}
	left, err := filepath.Glob(filepath.Join(s.opts.Dir, ".archive-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, tarball.WriteToFile(docker, ref, testImage(t, layers(t)[0])))
	f, err := s.Prepare(t.Context(), Request{Ref: docker})
	require.NoError(t, err)
	require.Len(t, f.Lowers, 2, "another image is at the path by now")
	f.Release()
}

func writeOCIArchive(t *testing.T, dir, to string) {
	t.Helper()
	f, err := os.Create(to)
	require.NoError(t, err)
	w := tar.NewWriter(f)
	require.NoError(t, w.AddFS(os.DirFS(dir)))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// serve runs a registry that counts blob downloads and, if password is not empty, wants it.
func serve(t *testing.T, password string) (host string, blobs *atomic.Int64) {
	t.Helper()
	blobs = new(atomic.Int64)
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, p, _ := r.BasicAuth(); password != "" && p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), blobs
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	host, blobs := serve(t, "")
	img := testImage(t, layers(t)...)
	ref, err := name.ParseReference(host + "/a/b:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, img))
	s := newStore(t)
	blobs.Store(0)
	var pulled atomic.Int64
	var wg sync.WaitGroup
	for range 8 { // one pull for many waiters, each of which is told how far it is
		wg.Go(func() {
			var told []Progress
			f, err := s.Prepare(t.Context(), Request{Ref: ref.String(), Progress: func(p Progress) { told = append(told, p) }})
			require.NoError(t, err)
			checkLayers(t, f)
			if len(told) > 0 { // else it came when all was there
				require.Equal(t, 2, told[len(told)-1].LayersDone)
				require.Positive(t, told[len(told)-1].Bytes)
				pulled.Add(1)
			}
		})
	}
	wg.Wait()
	require.Positive(t, pulled.Load())
	require.Empty(t, s.flights)
	require.Equal(t, int64(3), blobs.Load(), "a config and two layers")
	digest, err := img.Digest()
	require.NoError(t, err)
	f, err := s.Prepare(t.Context(), Request{Ref: host + "/a/b@" + digest.String()})
	require.NoError(t, err)
	require.Equal(t, digest.String(), f.Digest)
	require.LessOrEqual(t, blobs.Load(), int64(4), "layers are there: only the config is fetched")
	_, err = s.Prepare(t.Context(), Request{Ref: host + "/a/b@sha256:" + strings.Repeat("0", 64)})
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
	_, err = s.Prepare(t.Context(), Request{Ref: host + "/a/none:1"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
}

func TestRegistryLogin(t *testing.T) {
	t.Parallel()
	host, _ := serve(t, "secret")
	s := newStore(t)
	_, err := s.Prepare(t.Context(), Request{Ref: host + "/x:1"})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%v", err)
	_, err = s.Prepare(t.Context(), Request{Ref: host + "/x:1", Username: "u", Password: "secret"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
}

func TestBadReferences(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	junk := filepath.Join(t.TempDir(), "junk")
	require.NoError(t, os.WriteFile(junk, []byte(strings.Repeat("x", 2000)), 0o600))
	for ref, code := range map[string]drover.Code{
		"": drover.Invalid, "UPPER case": drover.Invalid, "/nowhere": drover.NotFound, t.TempDir(): drover.Invalid,
		junk: drover.Invalid, "127.0.0.1:1/x:1": drover.Unavailable,
	} {
		_, err := s.Prepare(t.Context(), Request{Ref: ref})
		require.Equal(t, code, drover.CodeOf(err), "%q: %v", ref, err)
	}
}

// forge puts the second layer's content into the first one's blob.
func forge(t *testing.T, dir string, img v1.Image) {
	t.Helper()
	ls, err := img.Layers()
	require.NoError(t, err)
	first, err := ls[0].Digest()
	require.NoError(t, err)
	second, err := ls[1].Digest()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "blobs/sha256", second.Hex))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs/sha256", first.Hex), data, 0o600))
}

func TestForgedLayer(t *testing.T) {
	t.Parallel()
	img := testImage(t, layers(t)...)
	lay := filepath.Join(t.TempDir(), "l")
	path, err := layout.Write(lay, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendImage(img))
	forge(t, lay, img)
	s := newStore(t)
	_, err = s.Prepare(t.Context(), Request{Ref: lay})
	require.ErrorContains(t, err, "damaged or forged")
	left, err := filepath.Glob(filepath.Join(s.opts.Dir, "layers", "*"))
	require.NoError(t, err)
	for _, l := range left {
		require.NotEqual(t, ".new-", filepath.Base(l)[:5])
	}
	require.LessOrEqual(t, len(left), 1)
}

func TestCollect(t *testing.T) {
	t.Parallel()
	host, _ := serve(t, "")
	ls := layers(t)
	for tag, img := range map[string]v1.Image{"1": testImage(t, ls[0], ls[1]), "2": testImage(t, ls[0])} {
		ref, err := name.ParseReference(host + "/i:" + tag)
		require.NoError(t, err)
		require.NoError(t, remote.Write(ref, img))
	}
	s := newStore(t)
	one, err := s.Prepare(t.Context(), Request{Ref: host + "/i:1"})
	require.NoError(t, err)
	two, err := s.Prepare(t.Context(), Request{Ref: host + "/i:2"})
	require.NoError(t, err)
	one.Release()
	one.Release()
	removed, err := s.Collect(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Empty(t, removed, "too young")
	removed, err = s.Collect(t.Context(), -time.Hour)
	require.NoError(t, err)
	require.Equal(t, []string{host + "/i:1"}, removed)
	require.NoDirExists(t, one.Lowers[1])
	require.DirExists(t, two.Lowers[1], "shared, and in use")
	held := s.Hold(two.Ref, two.Digest)
	two.Release()
	removed, err = s.Collect(t.Context(), -time.Hour)
	require.NoError(t, err)
	require.Empty(t, removed)
	held.Release()
	_, err = s.Collect(t.Context(), -time.Hour)
	require.NoError(t, err)
	require.NoDirExists(t, two.Lowers[1])
	again, err := s.Prepare(t.Context(), Request{Ref: host + "/i:1"})
	require.NoError(t, err)
	checkLayers(t, again)
}

func TestHostImage(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	f, err := s.Prepare(t.Context(), Request{Ref: Host})
	require.NoError(t, err)
	other, err := prepareHost(filepath.Join(s.opts.Dir, "host"))
	require.NoError(t, err)
	require.Equal(t, f.Lowers, other.Lowers, "the same machine gives the same image")
	for _, secret := range []string{"shadow", "machine-id", "ssh", "sudoers", "gshadow"} {
		require.NoFileExists(t, filepath.Join(f.Lowers[0], "etc", secret))
	}
	uid, _, _, err := f.LookupUser(HostUser)
	require.NoError(t, err)
	require.Equal(t, uint32(1000), uid)
}
