package nomadbackend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/runner"
)

// careless is a Nomad that runs commands here, and cuts what they say on its way.
type careless struct {
	dir string

	mu   sync.Mutex
	cuts []cut // of the next commands; then none
	ran  int   // commands
}

// cut says what of a command's output arrives, and what then happens.
type cut struct {
	after  int  // bytes of stdout, or whole
	broken bool // the connection breaks; else the end is reported
}

const whole = -1

func (c *careless) serve(w http.ResponseWriter, r *http.Request) {
	var argv []string
	if json.Unmarshal([]byte(r.URL.Query().Get("command")), &argv) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var up websocket.Upgrader
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	var stdin, stdout, stderr bytes.Buffer
	for {
		var in api.ExecStreamingInput
		if conn.ReadJSON(&in) != nil {
			return
		}
		if in.Stdin != nil {
			stdin.Write(in.Stdin.Data)
			if in.Stdin.Close {
				break
			}
		}
	}
	c.mu.Lock()
	c.ran++
	var how *cut
	if len(c.cuts) > 0 {
		how, c.cuts = &c.cuts[0], c.cuts[1:]
	}
	c.mu.Unlock()
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "\nsleep 1; exit", "\nexit") // it lingers for nobody
	}
	cmd := exec.CommandContext(r.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "NOMAD_TASK_DIR=" + c.dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &stdin, &stdout, &stderr
	_ = cmd.Run() // its code is told
	say := func(v any) { _ = conn.WriteJSON(v) }
	out, complaint := stdout.Bytes(), stderr.Bytes()
	if how != nil && how.after != whole {
		out, complaint = out[:min(how.after, len(out))], nil
	}
	say(map[string]any{"stdout": map[string]any{"data": out}})
	say(map[string]any{"stderr": map[string]any{"data": complaint}})
	if how != nil && how.broken {
		return
	}
	say(map[string]any{"exited": true, "result": map[string]any{"exit_code": cmd.ProcessState.ExitCode()}})
	for err == nil { // until the client goes
		_, _, err = conn.ReadMessage()
	}
}

// carelessly is the files of a runner on such a cluster, and the cluster.
func carelessly(t *testing.T, cuts ...cut) (*files, *careless) {
	t.Helper()
	c := &careless{dir: t.TempDir(), cuts: cuts}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/client/allocation/{id}/exec", c.serve)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	b := newBackend(t, s.URL)
	t.Cleanup(b.client.Close)
	return &files{b, "a"}, c
}

func (c *careless) holds(t *testing.T, name, text string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	require.NoError(t, err)
	require.Equal(t, text, string(data))
}

func TestCutChangesAreRepeated(t *testing.T) {
	t.Parallel()
	f, c := carelessly(t, cut{}, cut{after: 3}, cut{after: 1})
	require.NoError(
		t, f.Apply(t.Context(), []execution.FileChange{{Path: "sub/x", Write: true, Data: []byte("hello")}, {Path: "d", Mkdir: true}}),
	)
	c.holds(t, "sub/x", "hello")
	require.DirExists(t, filepath.Join(c.dir, "d"))
	require.Equal(t, 5, c.ran)
	c.cuts = []cut{{}}
	require.NoError(t, f.Apply(t.Context(), []execution.FileChange{{Path: "sub", Delete: true}}))
	require.NoDirExists(t, filepath.Join(c.dir, "sub"))

	c.cuts = []cut{{}, {}}
	require.NoError(
		t, f.Write(t.Context(), execution.FileChange{Path: "streamed"}, io.MultiReader(strings.NewReader("in "), strings.NewReader("pieces"))),
	)
	c.holds(t, "streamed", "in pieces")

	c.cuts = []cut{{}, {}, {}, {}}
	err := f.Apply(t.Context(), []execution.FileChange{{Path: "x", Write: true}})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it does not try for ever")
}

// After a broken connection nobody knows whether the command runs on: a change is not made a second time beside it. What
// is too long to be kept cannot be.
func TestChangesThatCannotBeRepeatedAreNot(t *testing.T) {
	t.Parallel()
	f, c := carelessly(t, cut{broken: true})
	err := f.Apply(t.Context(), []execution.FileChange{{Path: "x", Write: true, Data: []byte("hello")}})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Equal(t, 1, c.ran)

	c.cuts = []cut{{}}
	err = f.Write(t.Context(), execution.FileChange{Path: "long"}, io.LimitReader(zeros{}, maxKept+1))
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "before all of its output was here")
	require.Equal(t, 2, c.ran)
}

func TestCutListsAreRepeated(t *testing.T) {
	t.Parallel()
	f, c := carelessly(t, cut{after: 20}, cut{broken: true}, cut{after: 2})
	for i := range 9 {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, fmt.Sprint("f", i)), nil, 0o600))
	}
	list, err := f.List(t.Context(), execution.FileRequest{Path: ".", Privileged: true})
	require.NoError(t, err)
	require.Len(t, list, 9)
	_, err = f.List(t.Context(), execution.FileRequest{Path: "none", Privileged: true})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.Equal(t, 5, c.ran, "what is known is not asked again")
}

// A download goes on where it was cut.
func TestCutDownloadsGoOn(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 1000)
	head := len("81a4 10000 1700000000 0 0 root root\n")
	for name, test := range map[string]struct {
		cuts           []cut
		offset, length int64
	}{
		"before it began":     {cuts: []cut{{}, {broken: true}, {after: 5}}},
		"in its midst":        {cuts: []cut{{after: 3000}, {after: 4000, broken: true}, {after: head + 1}}},
		"at its end":          {cuts: []cut{{after: head + len(text)}}},
		"of a part":           {cuts: []cut{{after: 300}, {after: 400}}, offset: 1234, length: 5000},
		"of a part to an end": {cuts: []cut{{after: 300}}, offset: 9000},
		"of nothing":          {offset: 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, c := carelessly(t, test.cuts...)
			require.NoError(t, os.WriteFile(filepath.Join(c.dir, "x"), []byte(text), 0o600))
			info, r, err := f.Read(t.Context(), execution.FileRequest{Path: "x", Privileged: true, Offset: test.offset, Length: test.length})
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			end := int64(len(text))
			if test.length > 0 {
				end = test.offset + test.length
			}
			require.Equal(t, text[min(test.offset, end):end], string(got))
			require.Equal(t, int64(len(text)), info.Size)
		})
	}
}

func TestDownloadsOfFilesThatChangeDoNotGoOn(t *testing.T) {
	t.Parallel()
	f, c := carelessly(t, cut{after: 100})
	path := filepath.Join(c.dir, "x")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("a"), 1000), 0o600))
	_, r, err := f.Read(t.Context(), execution.FileRequest{Path: "x", Privileged: true})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("b"), 1001), 0o600))
	_, err = io.ReadAll(r)
	require.ErrorContains(t, err, "changed while it was read")
	require.NoError(t, r.Close())
}

func TestArchivesAreRepeatedUntilTheyBegin(t *testing.T) {
	t.Parallel()
	f, c := carelessly(t, cut{}, cut{after: 9, broken: true})
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "x"), []byte("in it"), 0o600))
	r, err := f.Archive(t.Context(), execution.FileRequest{Path: ".", Privileged: true})
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Contains(t, string(data), "in it")
	c.cuts = []cut{{after: whole}, {after: 700}}
	r, err = f.Archive(t.Context(), execution.FileRequest{Path: ".", Privileged: true})
	if err == nil {
		_, err = io.ReadAll(r)
		require.NoError(t, r.Close())
	}
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

// A runner whose job is gone already is released, however the cluster says so.
func TestReleaseOfWhatIsGone(t *testing.T) {
	t.Parallel()
	for _, answer := range []struct {
		status int
		text   string
	}{{404, "job not found"}, {500, "job not found"}, {500, "Job not found"}, {200, `{"EvalID":""}`}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte(answer.text))
		}))
		b := newBackend(t, s.URL)
		b.runners["r"] = &runnerJob{id: "r", allocID: "a"}
		b.allocs["a"] = &drover.Allocation{ID: "a"}
		require.NoError(t, b.ReleaseRunners(t.Context(), runner.Releases{AllocIDs: []string{"a", "unknown"}, Reason: "released"}), answer)
		require.NoError(t, b.ReleaseRunners(t.Context(), runner.Releases{AllocIDs: []string{"a"}, Reason: "released"}), "once more")
		b.client.Close()
		s.Close()
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("No cluster leader"))
	}))
	defer s.Close()
	b := newBackend(t, s.URL)
	defer b.client.Close()
	b.runners["r"] = &runnerJob{id: "r", allocID: "a"}
	err := b.ReleaseRunners(t.Context(), runner.Releases{AllocIDs: []string{"a"}, Reason: "released"})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}
