package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/programtest"
)

// hub is a registry that can be told to misbehave.
type hub struct {
	host  string
	blobs atomic.Int64
	// fault, if set, may answer a request itself; it is called with how often its path was asked before.
	fault atomic.Pointer[func(w http.ResponseWriter, r *http.Request, asked int) bool]
	mu    sync.Mutex
	asked map[string]int
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{asked: map[string]int{}}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := h.fault.Load(); f != nil && r.Method == http.MethodGet {
			h.mu.Lock()
			n := h.asked[r.URL.Path]
			h.asked[r.URL.Path]++
			h.mu.Unlock()
			if (*f)(w, r, n) {
				return
			}
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			h.blobs.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	h.host = strings.TrimPrefix(srv.URL, "http://")
	return h
}

func (h *hub) push(t *testing.T, repo string, img v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(h.host + "/" + repo)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, img))
	h.blobs.Store(0)
	return ref.String()
}

func (h *hub) misbehave(f func(w http.ResponseWriter, r *http.Request, asked int) bool) {
	h.fault.Store(&f)
}

// isLayer tells the larger of an image's two blobs from its configuration by what img says.
func isLayer(t *testing.T, img v1.Image) func(r *http.Request) bool {
	t.Helper()
	config, err := img.ConfigName()
	require.NoError(t, err)
	return func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/blobs/") && !strings.Contains(r.URL.Path, config.Hex)
	}
}

func big(t *testing.T) v1.Image {
	t.Helper()
	text := make([]byte, 300<<10)
	for i := range text { // does not compress
		text[i] = byte(i * i >> 7 * 31 >> 3)
	}
	return testImage(t, archive(t, entry{name: "big", text: string(text)}))
}

func cutMidway(w http.ResponseWriter) {
	_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0})
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler) // breaks the connection
}

// TestALayerThatBreaksOffIsFetchedAgain, three times at most, and is told as what it is.
func TestALayerThatBreaksOffIsFetchedAgain(t *testing.T) {
	t.Parallel()
	h, img := newHub(t), big(t)
	ref, layer := h.push(t, "x:1", img), isLayer(t, img)
	h.misbehave(func(w http.ResponseWriter, r *http.Request, asked int) bool {
		if layer(r) && asked < 1 {
			cutMidway(w)
		}
		return false
	})
	s := newStore(t)
	f, err := s.Prepare(t.Context(), Request{Ref: ref})
	require.NoError(t, err)
	f.Release()
	for what, fault := range map[string]func(w http.ResponseWriter){
		"unexpected EOF": cutMidway,
		"verifying sha256": func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(make([]byte, 1<<20))
		},
	} {
		h.misbehave(func(w http.ResponseWriter, r *http.Request, _ int) bool {
			if layer(r) {
				fault(w)
				return true
			}
			return false
		})
		s := newStore(t)
		_, err := s.Prepare(t.Context(), Request{Ref: ref})
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, what)
		left, err := os.ReadDir(filepath.Join(s.opts.Dir, "layers"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestWhatRegistriesRefuse is told with its reason, and by its code whether trying again helps.
func TestWhatRegistriesRefuse(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]drover.Code{
		401: drover.Forbidden, 403: drover.Forbidden, 404: drover.NotFound, 429: drover.Unavailable, 500: drover.Unavailable,
		503: drover.Unavailable,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			ref := h.push(t, "x:1", big(t))
			h.misbehave(func(w http.ResponseWriter, r *http.Request, _ int) bool {
				if !strings.Contains(r.URL.Path, "/manifests/") {
					return false
				}
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, `{"errors":[{"code":"OOPS","message":"because of %d"}]}`, status)
				return true
			})
			_, err := newStore(t).Prepare(t.Context(), Request{Ref: ref})
			require.Equal(t, want, drover.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "because of "+strconv.Itoa(status))
			require.ErrorContains(t, err, ref)
		})
	}
}

// TestRetryAfter is waited for.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ref := h.push(t, "x:1", big(t))
	var first, second atomic.Int64
	h.misbehave(func(w http.ResponseWriter, r *http.Request, asked int) bool {
		now := time.Now().UnixNano()
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		if !first.CompareAndSwap(0, now) {
			second.CompareAndSwap(0, now)
			return false
		}
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	f, err := newStore(t).Prepare(t.Context(), Request{Ref: ref})
	require.NoError(t, err)
	f.Release()
	require.GreaterOrEqual(t, second.Load()-first.Load(), int64(1950*time.Millisecond))
}

// TestARegistryThatSaysNothing is given up, whatever it was asked; so is a pull that nobody waits for.
func TestARegistryThatSaysNothing(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"/manifests/", "/blobs/"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			ref := h.push(t, "x:1", big(t))
			h.misbehave(func(w http.ResponseWriter, r *http.Request, _ int) bool {
				if !strings.Contains(r.URL.Path, what) {
					return false
				}
				_, _ = w.Write([]byte{0x1f})
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return true
			})
			s := NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Quiet: 200 * time.Millisecond})
			_, err := s.Prepare(t.Context(), Request{Ref: ref})
			require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "sends nothing any more")
			patient := newStore(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { // ends with cancel
				_, err := patient.Prepare(ctx, Request{Ref: ref, Progress: func(Progress) { cancel() }})
				ended <- err
			}()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.Eventually(t, func() bool { // the fetch ends as well
				ok := patient.preparing.TryLock()
				if ok {
					patient.preparing.Unlock()
				}
				return ok
			}, 10*time.Second, time.Millisecond)
		})
	}
}

// TestTwentyWaitersAndACommonBase: as many requests as one pull of each makes.
func TestTwentyWaitersAndACommonBase(t *testing.T) {
	t.Parallel()
	h, base := newHub(t), archive(t, entry{name: "base", text: "x"})
	refs := []string{
		h.push(t, "a:1", testImage(t, base, archive(t, entry{name: "a", text: "a"}))),
		h.push(t, "b:1", testImage(t, base, archive(t, entry{name: "b", text: "b"}))),
	}
	s := newStore(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			f, err := s.Prepare(t.Context(), Request{Ref: refs[i%2]})
			if err != nil {
				t.Error(err)
				return
			}
			f.Release()
		})
	}
	wg.Wait()
	require.Equal(t, int64(5), h.blobs.Load(), "two configurations, two layers and one that both have")
	require.Empty(t, s.flights)
	unpacked, err := os.ReadDir(filepath.Join(s.opts.Dir, "layers"))
	require.NoError(t, err)
	require.Len(t, unpacked, 3)
}

// TestPlatforms: the manifest for this machine is taken; that there is none is said, and final.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	mine, other := testImage(t, archive(t, entry{name: "mine", text: "x"})), testImage(t, archive(t, entry{name: "other", text: "x"}))
	add := func(img v1.Image, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}}
	}
	for tag, index := range map[string]v1.ImageIndex{
		"both":    mutate.AppendManifests(empty.Index, add(other, "mips"), add(mine, runtime.GOARCH)),
		"foreign": mutate.AppendManifests(empty.Index, add(other, "mips")),
	} {
		ref, err := name.ParseReference(h.host + "/p:" + tag)
		require.NoError(t, err)
		require.NoError(t, remote.WriteIndex(ref, index))
	}
	s := newStore(t)
	f, err := s.Prepare(t.Context(), Request{Ref: h.host + "/p:both"})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(f.Lowers[1], "mine"))
	f.Release()
	_, err = s.Prepare(t.Context(), Request{Ref: h.host + "/p:foreign"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "not for linux/"+runtime.GOARCH)
}

// TestCompressions: each layer has its own.
func TestCompressions(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	plain := archive(t, entry{name: "plain", text: "x"})
	squeezed := archive(t, entry{name: "zstd", text: "x"})
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z)
	require.NoError(t, err)
	_, err = w.Write(squeezed)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	img := testImage(t, archive(t, entry{name: "gzip", text: "x"}))
	for _, l := range []struct{ content, plain []byte }{{plain, plain}, {z.Bytes(), squeezed}} {
		id, _, err := v1.SHA256(bytes.NewReader(l.plain))
		require.NoError(t, err)
		img, err = mutate.AppendLayers(img, diffed{static.NewLayer(l.content, types.OCILayer), id})
		require.NoError(t, err)
	}
	f, err := newStore(t).Prepare(t.Context(), Request{Ref: h.push(t, "c:1", img)})
	require.NoError(t, err)
	for i, file := range []string{"zstd", "plain", "gzip"} {
		require.FileExists(t, filepath.Join(f.Lowers[i+1], file))
	}
	f.Release()
}

type diffed struct {
	v1.Layer
	id v1.Hash
}

func (d diffed) DiffID() (v1.Hash, error) { return d.id, nil }

// TestAccounts: a token from another server, docker's file, and a helper that it names.
func TestAccounts(t *testing.T) {
	h := newHub(t)
	ref := h.push(t, "x:1", big(t))
	h.misbehave(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		_, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && password == "secret":
			_, _ = fmt.Fprint(w, `{"token": "let-me-in"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer let-me-in":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+h.host+`/token",service="s"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			return false
		}
		return true
	})
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	helper := "#!/bin/sh\nread s; echo \"{\\\"ServerURL\\\":\\\"$s\\\",\\\"Username\\\":\\\"me\\\",\\\"Secret\\\":\\\"secret\\\"}\"\n"
	programtest.Write(t, filepath.Join(dir, "docker-credential-mine"), []byte(helper))
	try := func(r Request, config string) error {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
		r.Ref = ref
		f, err := newStore(t).Prepare(t.Context(), r)
		if err == nil {
			f.Release()
		}
		return err
	}
	require.Equal(t, drover.Forbidden, drover.CodeOf(try(Request{}, "{}")))
	require.Equal(t, drover.Forbidden, drover.CodeOf(try(Request{Username: "me", Password: "wrong"}, "{}")))
	require.NoError(t, try(Request{Username: "me", Password: "secret"}, "{}"))
	require.NoError(t, try(Request{}, `{"auths": {"`+h.host+`": {"auth": "bWU6c2VjcmV0"}}}`))
	require.NoError(t, try(Request{}, `{"credHelpers": {"`+h.host+`": "mine"}}`))
}
