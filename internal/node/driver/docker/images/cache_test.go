package images

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
)

// dockerd answers as far as images are concerned.
type dockerd struct {
	*httptest.Server

	mu      sync.Mutex
	images  map[string]string // references: ids; guarded by mu
	answers map[string]string // what a pull of a reference says; guarded by mu
	pulls   []string          // references and accounts; guarded by mu
	hold    chan struct{}     // pulls wait for its end; nil: none does
}

var imagePath = regexp.MustCompile(`^/v[0-9.]+/images/(.+?)(/json)?$`)

func newDockerd(t *testing.T) *dockerd {
	t.Helper()
	d := &dockerd{images: map[string]string{}, answers: map[string]string{}}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *dockerd) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.47")
	w.Header().Set("Content-Type", "application/json")
	m := imagePath.FindStringSubmatch(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/_ping"):
	case strings.HasSuffix(r.URL.Path, "/images/create"):
		d.pull(w, r)
	case m != nil && r.Method == http.MethodGet:
		d.inspect(w, m[1])
	case m != nil && r.Method == http.MethodDelete:
		d.remove(w, m[1])
	default:
		http.NotFound(w, r)
	}
}

func (d *dockerd) pull(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fromImage"), "docker.io/library/")
	ref := name + ":" + r.URL.Query().Get("tag")
	d.mu.Lock()
	d.pulls = append(d.pulls, ref+" "+r.Header.Get("X-Registry-Auth"))
	answer, id, hold := d.answers[ref], "sha256:"+fmt.Sprintf("%064d", len(d.pulls)), d.hold
	d.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if answer == "" {
		d.mu.Lock()
		d.images[ref] = id
		d.mu.Unlock()
	} else {
		_ = json.NewEncoder(w).Encode(map[string]any{"errorDetail": map[string]any{"message": answer}, "error": answer})
	}
}

// named finds an image by one of its references or its id. Caller holds mu.
func (d *dockerd) named(name string) (id string, refs []string) {
	id = name
	if of, ok := d.images[name]; ok {
		id = of
	} else if of, ok := d.images[name+":latest"]; ok {
		id = of
	}
	for ref, of := range d.images {
		if of == id {
			refs = append(refs, ref)
		}
	}
	return id, refs
}

func (d *dockerd) inspect(w http.ResponseWriter, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, refs := d.named(name)
	if len(refs) == 0 {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"No such image"}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"Id": id, "RepoTags": refs, "Config": map[string]any{"User": "u", "WorkingDir": "/w", "Cmd": []string{"c"}, "Env": []string{"A=b"}},
	})
}

func (d *dockerd) remove(w http.ResponseWriter, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, _ := d.named(name)
	delete(d.images, name)
	_ = json.NewEncoder(w).Encode([]map[string]string{{"Untagged": name, "Deleted": id}})
}

func (d *dockerd) has(ref string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[ref] != ""
}

func (d *dockerd) pulled() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pulls)
}

func (d *dockerd) service(t *testing.T, dir string) *Cache {
	t.Helper()
	c, err := client.New(client.WithHost("tcp://" + strings.TrimPrefix(d.URL, "http://")))
	require.NoError(t, err)
	s := New(Config{
		Name:   "docker",
		Docker: c, Owner: dir, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Delay: time.Hour, PullQuiet: time.Hour,
	})
	t.Cleanup(func() {
		s.Close()
		_ = c.Close()
	})
	return s
}

func TestAnImageIsPulledOnceAndWhenItMoves(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	s := d.service(t, t.TempDir())
	get := func(req Request, pool bool) Image {
		got, err := s.Get(t.Context(), &driver.Spec{Pool: pool}, req)
		require.NoError(t, err)
		return got
	}
	first := get(Request{Ref: "app:1"}, false)
	require.Equal(t, Image{ID: first.ID, Ref: "app:1", User: "u", WorkDir: "/w", Cmd: []string{"c"}, Env: []string{"A=b"}}, first)
	require.Equal(t, first, get(Request{Ref: "app:1"}, false))
	require.Equal(t, 1, d.pulled(), "what is here is taken")
	get(Request{Ref: "app:1", ForcePull: true}, false)
	require.Equal(t, 2, d.pulled())
	get(Request{Ref: "app:latest"}, false)
	get(Request{Ref: "app:latest"}, false)
	require.Equal(t, 4, d.pulled(), "a name that moves is asked for each time")
	get(Request{Ref: "app:latest"}, true)
	require.Equal(t, 4, d.pulled(), "but for warm runners")
	d.mu.Lock()
	d.answers["app:latest"] = "connection refused"
	d.mu.Unlock()
	get(Request{Ref: "app:latest"}, false)
	require.Equal(t, 5, d.pulled(), "what is here serves where there is no registry")
}

// TestManyWaitForOnePull, and it ends when the last of them has gone.
func TestManyWaitForOnePull(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	d.hold = make(chan struct{})
	s := d.service(t, t.TempDir())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := s.Get(t.Context(), &driver.Spec{}, Request{Ref: "app:1"}); err != nil {
				t.Error(err)
			}
		})
	}
	waiting := func(n int) func() bool {
		return func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, p := range s.pulls {
				return len(p.waiters) == n && d.pulled() == 1
			}
			return false
		}
	}
	require.Eventually(t, waiting(10), time.Minute, time.Millisecond)
	close(d.hold)
	all.Wait()
	require.Equal(t, 1, d.pulled())
	require.Equal(t, 10, func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.users[d.images["app:1"]] }())
}

func TestWhyAPullFails(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	s := d.service(t, t.TempDir())
	for answer, code := range map[string]drover.Code{
		"pull access denied for x":                   drover.Forbidden,
		"unauthorized: authentication required":      drover.Forbidden,
		"manifest for x not found: manifest unknown": drover.NotFound,
		"no matching manifest for linux/arm64":       drover.Invalid,
		"dial tcp: lookup x: no such host":           drover.Unavailable,
		"toomanyrequests: You have reached your":     drover.Unavailable,
		"something else":                             drover.Unavailable,
	} {
		d.mu.Lock()
		d.answers["app:1"] = answer
		d.mu.Unlock()
		_, err := s.Get(t.Context(), &driver.Spec{}, Request{Ref: "app:1"})
		require.Equal(t, code, drover.CodeOf(err), answer)
		require.ErrorContains(t, err, answer)
	}
	require.Empty(t, s.users)
	_, err := s.Find(t.Context(), "none:1")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

func TestAnAccountThatIsOptional(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	s := d.service(t, t.TempDir())
	d.answers["app:1"] = "denied"
	req := Request{Ref: "app:1", Account: Account{Username: "me", Password: "x"}, AccountOptional: true}
	_, err := s.Get(t.Context(), &driver.Spec{}, req)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.Len(t, d.pulls, 2, "with the account, and without")
	require.NotEqual(t, "app:1 ", d.pulls[0])
	require.Equal(t, "app:1 ", d.pulls[1])
}

// TestOnlyImagesOfOursAreRemoved, when nobody uses them; a later agent knows them by the file.
func TestOnlyImagesOfOursAreRemoved(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	dir := t.TempDir()
	d.images["theirs:1"] = "sha256:" + strings.Repeat("f", 64)
	s := d.service(t, dir)
	theirs, err := s.Get(t.Context(), &driver.Spec{}, Request{Ref: "theirs:1"})
	require.NoError(t, err)
	require.Empty(t, theirs.Ref)
	ours, err := s.Get(t.Context(), &driver.Spec{}, Request{Ref: "ours:1"})
	require.NoError(t, err)
	s.Hold(&Image{ID: ours.ID})
	s.Release(ours.ID)
	s.remove(ours.ID)
	require.True(t, d.has("ours:1"), "it has a user")
	s.Release(theirs.ID)
	s.remove(theirs.ID)
	require.True(t, d.has("theirs:1"))
	s.Close() // the agent ends while a task still uses the image

	text, err := os.ReadFile(filepath.Join(dir, "docker-images.json"))
	require.NoError(t, err)
	require.Contains(t, string(text), "ours:1")
	later := d.service(t, dir)
	later.Hold(&Image{ID: ours.ID, Ref: "ours:1"})
	later.Sweep()
	require.Empty(t, later.timers, "it is used")
	later.Release(ours.ID)
	require.Len(t, later.timers, 1)
	later.remove(ours.ID)
	require.False(t, d.has("ours:1"))
	text, err = os.ReadFile(filepath.Join(dir, "docker-images.json"))
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker-images.json"), []byte("half"), 0o600))
	d.service(t, dir).Sweep() // says so, and goes on
}

func TestWordsOfAStream(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Loaded x", streamText([]byte(`{"stream":"Loaded x\n"}`)))
	require.Equal(t, "a b", streamText([]byte(`{"stream":"a"} {"error":"b"}`)))
	require.Empty(t, streamText(nil))
	require.Contains(t, streamText([]byte(`{"stream":"a"} {`)), "unexpected EOF")
}
