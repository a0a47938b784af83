package hook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/artifact"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/rendering"
	"github.com/drover-project/drover/internal/taskenv"
)

func TestMain(m *testing.M) {
	evaluator.Child(map[string]evaluator.Func{rendering.Name: rendering.Func})
	goleak.VerifyTestMain(m)
}

// rendersIn is the hook as it is in an agent.
func rendersIn(t *testing.T, c clock.Clock) templates {
	p := evaluator.New(evaluator.Config{
		What: "the template", Limits: evaluator.Limits{Memory: 128 << 20, CPU: 5 * time.Second, Wall: time.Minute, Answer: rendering.MaxResult},
		Workers: 1, Waiting: 10, Idle: time.Minute, Clock: c, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(p.Close)
	return templates{Settings{Evaluator: p}}
}

func newRequest(t *testing.T) *Request {
	root := allocdir.NewRoot(t.TempDir())
	require.NoError(t, root.Prepare())
	dir, err := root.Dir("01234567-89ab-cdef-0123-456789abcdef")
	require.NoError(t, err)
	require.NoError(t, dir.Build())
	require.NoError(t, dir.BuildTask("web"))
	task := &drover.Task{Name: "web", Env: map[string]string{"COLOUR": "blue"}}
	r := &Request{
		Node: &drover.Node{
			Drivers:     map[string]*drover.DriverInfo{"raw_exec": {Healthy: true}},
			HostVolumes: map[string]*drover.HostVolumeInfo{"data": {Path: "/srv/data"}, "data[2]": {Path: "/srv/2", ReadOnly: true}},
		},
		Dir: dir, Dirs: dir.Task("web"), Task: task, Group: &drover.TaskGroup{Name: "g", Tasks: []*drover.Task{task}},
		Alloc: &drover.Allocation{ID: "a", Name: "j.g[2]", TaskGroup: "g", Job: &drover.Job{ID: "j"}}, Emit: func(*drover.TaskEvent) {},
	}
	r.Env = taskenv.Build(taskenv.Input{Node: r.Node, Alloc: r.Alloc, Group: r.Group, Task: task, Dirs: EnvDirs(r.Dirs)})
	return r
}

func read(t *testing.T, parts ...string) string {
	data, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return string(data)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	r := newRequest(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.Dirs.Local, "src.tpl"), []byte(`[[ env "COLOUR" ]]`), 0o600))
	r.Task.Templates = []*drover.Template{
		{
			EmbeddedTmpl: `c={{ env "COLOUR" | toUpper }} {{ envOrDefault "NOPE" "d" }} {{ range split "," "a,b" }}<{{.}}>{{ end }}`,
			DestPath:     "local/deep/a.txt", Perms: "600",
		},
		{SourcePath: "local/src.tpl", DestPath: "${NOMAD_SECRETS_DIR}/b", LeftDelim: "[[", RightDelim: "]]"},
		{EmbeddedTmpl: "# c\nexport A=1\nB=\"two words\"\n\nC='x'\n", DestPath: "secrets/env", Envvars: true},
		{EmbeddedTmpl: `{{ env "A" }}`, DestPath: "/alloc/data/c"},
	}
	require.NoError(t, rendersIn(t, clock.Wall{}).Prestart(context.Background(), r))
	require.Equal(t, "c=BLUE d <a><b>", read(t, r.Dirs.Local, "deep/a.txt"))
	info, err := os.Stat(filepath.Join(r.Dirs.Local, "deep/a.txt"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, "blue", read(t, r.Dirs.Secrets, "b"))
	require.Equal(t, "1", read(t, r.Dirs.Shared, "data/c"))
	require.Equal(t, "two words", r.Env.Vars()["B"])
	require.Equal(t, "x", r.Env.Vars()["C"])
}

func TestTemplatesRefuse(t *testing.T) {
	t.Parallel()
	for name, tpl := range map[string]*drover.Template{
		"syntax":        {EmbeddedTmpl: "{{ if }}", DestPath: "local/x"},
		"consul":        {EmbeddedTmpl: `{{ key "a" }}`, DestPath: "local/x"},
		"unknown":       {EmbeddedTmpl: `{{ executeTemplate "a" }}`, DestPath: "local/x"},
		"escape":        {EmbeddedTmpl: "x", DestPath: "../../../x"},
		"absolute":      {EmbeddedTmpl: "x", DestPath: "/etc/x"},
		"link":          {EmbeddedTmpl: "x", DestPath: "local/out/x"},
		"source":        {SourcePath: "/etc/passwd", DestPath: "local/x"},
		"permissions":   {EmbeddedTmpl: "x", DestPath: "local/x", Perms: "rw"},
		"environment":   {EmbeddedTmpl: "no equals", DestPath: "local/x", Envvars: true},
		"must be there": {EmbeddedTmpl: `{{ mustEnv "NOPE" }}`, DestPath: "local/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRequest(t)
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(r.Dirs.Local, "out")))
			r.Task.Templates = []*drover.Template{tpl}
			err := rendersIn(t, clock.Wall{}).Prestart(context.Background(), r)
			var f *Failure
			require.ErrorAs(t, err, &f)
			require.False(t, f.Recoverable)
		})
	}
}

// A Failure says whether the start may be tried again; options, headers and addresses have the task's variables in them.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Task") != "web" || q.URL.Path != "/web.txt" {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(server.Close)
	h := artifacts{artifact.New(artifact.Config{
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Size: 1 << 20, Unpacked: 1 << 20, Files: 100, Clock: clock.Wall{},
	})}
	for _, c := range []struct {
		of    drover.TaskArtifact
		err   string
		again bool
	}{
		{drover.TaskArtifact{GetterSource: "/web.txt", RelativeDest: "local/x"}, "", false},
		{drover.TaskArtifact{GetterSource: "/u.txt"}, "404", true},
		{drover.TaskArtifact{GetterSource: "/web.txt", GetterOptions: map[string]string{"checksum": "md5:00"}}, "checksum", false},
		{drover.TaskArtifact{GetterSource: "/web.txt", RelativeDest: "../../../x"}, "escapes", false},
	} {
		r := newRequest(t)
		c.of.GetterSource = server.URL + c.of.GetterSource
		c.of.GetterHeaders = map[string]string{"X-Task": "${NOMAD_TASK_NAME}"}
		r.Task.Artifacts = []*drover.TaskArtifact{&c.of}
		err := h.Prestart(context.Background(), r)
		if c.err == "" {
			require.NoError(t, err)
			require.Equal(t, "hello", read(t, r.Dirs.Task, "local/x/web.txt"))
			continue
		}
		var f *Failure
		require.ErrorAs(t, err, &f)
		require.ErrorContains(t, err, c.err)
		require.Equal(t, drover.TaskDownloadFailed, f.Type)
		require.Equal(t, c.again, f.Recoverable, "%v", err)
	}
}

// The agent reads what a sandbox may not: a job gets files of the node only where it could read them itself.
func TestArtifactsOfTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, enabled := range map[string]bool{fifo: true, dir: true, file: false} {
		r := newRequest(t)
		r.Node.Drivers["raw_exec"].Healthy = enabled
		r.Task.Artifacts = []*drover.TaskArtifact{{GetterSource: path}}
		var f *Failure
		require.ErrorAs(t, artifacts{artifact.New(artifact.Config{Size: 1, Clock: clock.Wall{}})}.Prestart(t.Context(), r), &f, path)
		require.False(t, f.Recoverable, path)
		require.Equal(t, drover.Invalid, drover.CodeOf(f.Err))
	}
	r := newRequest(t)
	r.Task.Artifacts = []*drover.TaskArtifact{{GetterSource: file}}
	local := artifacts{artifact.New(artifact.Config{Size: 1, Clock: clock.Wall{}})}
	require.NoError(t, local.Prestart(t.Context(), r))
	r.Node.Drivers["raw_exec"].Attributes = map[string]string{driver.OwnUserDenied: "1"}
	require.ErrorContains(t, local.Prestart(t.Context(), r), "denied_host_uids", "its tasks could not read what the agent does")
	r = newRequest(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(r.Dirs.Local, "t"), 0o600))
	r.Task.Templates = []*drover.Template{{SourcePath: "local/t", DestPath: "local/out"}}
	require.ErrorContains(t, rendersIn(t, clock.Wall{}).Prestart(t.Context(), r), "not a regular file")
}

// A template that would never end is ended.
func TestTemplatesThatLoop(t *testing.T) {
	t.Parallel()
	render := func(ctx context.Context, text string) error {
		r := newRequest(t)
		r.Task.Templates = []*drover.Template{{EmbeddedTmpl: text, DestPath: "local/out"}}
		return rendersIn(t, clock.Wall{}).Prestart(ctx, r)
	}
	for _, text := range []string{
		"{{range 9000000000000000000}}{{end}}",
		"{{with 1}}{{if true}}{{range 1000000000}}{{range 1000000000}}{{end}}{{else}}{{end}}{{end}}{{end}}",
		`{{define "a"}}{{template "b"}}{{template "b"}}{{end}}{{define "b"}}{{template "c"}}{{template "c"}}{{end}}` +
			`{{define "c"}}{{range 1000}}{{range 1000}}{{end}}{{end}}{{end}}{{template "a"}}`,
	} {
		require.ErrorContains(t, render(t.Context(), text), "go round more than", text)
	}
	require.NoError(t, render(t.Context(), `{{define "x"}}x{{end}}{{range 3}}{{template "x"}}{{else}}none{{end}}`))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, render(ended, "{{range 3}}{{end}}"), context.Canceled)
}

func TestDispatchPayload(t *testing.T) {
	t.Parallel()
	r := newRequest(t)
	r.Task.DispatchPayload = &drover.DispatchPayloadConfig{File: "in/config.json"}
	r.Alloc.Job.Payload = []byte("{}")
	require.NoError(t, dispatchPayload{}.Prestart(context.Background(), r))
	require.Equal(t, "{}", read(t, r.Dirs.Local, "in/config.json"))
	r.Task.DispatchPayload.File = "../../../x"
	require.ErrorContains(t, dispatchPayload{}.Prestart(context.Background(), r), "escapes")
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	r := newRequest(t)
	one, two := t.TempDir(), t.TempDir()
	gone := filepath.Join(one, "gone")
	r.Node.HostVolumes = map[string]*drover.HostVolumeInfo{
		"data": {Path: one}, "data[2]": {Path: two, ReadOnly: true}, "gone": {Path: gone},
	}
	r.Group.Volumes = map[string]*drover.VolumeRequest{
		"g": {Type: "host", Source: "gone"}, "v": {Type: "host", Source: "data"},
		"p": {Type: "host", Source: "data", PerAlloc: true}, "c": {Type: "csi", Source: "x"},
		"n": {Source: "nope"},
	}
	r.Task.VolumeMounts = []*drover.VolumeMount{{Volume: "v", Destination: "/d"}, {Volume: "p", Destination: "/p"}}
	require.NoError(t, volumes{}.Prestart(context.Background(), r))
	want := []driver.Mount{{Source: one, Target: "/d"}, {Source: two, Target: "/p", ReadOnly: true}}
	require.Empty(t, cmp.Diff(want, r.Mounts))
	for name, code := range map[string]drover.Code{"c": drover.NotImplemented, "n": drover.NotFound, "x": drover.Invalid} {
		r.Task.VolumeMounts = []*drover.VolumeMount{{Volume: name}}
		require.Equal(t, code, drover.CodeOf(volumes{}.Prestart(context.Background(), r)), name)
	}
	// A folder that vanished was no error, and docker made an empty one in its place.
	r.Task.VolumeMounts = []*drover.VolumeMount{{Volume: "g", Destination: "/g"}}
	err := volumes{}.Prestart(context.Background(), r)
	require.EqualError(t, err, `volume "g": host volume "gone" is not there any more: stat `+gone+": no such file or directory")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

type counted struct {
	name string
	once bool
	runs int
	err  error
}

func (c *counted) Name() string { return c.name }
func (c *counted) Once() bool   { return c.once }
func (c *counted) Prestart(context.Context, *Request) error {
	c.runs++
	return c.err
}

func TestRunRemembersWhatIsDone(t *testing.T) {
	t.Parallel()
	once, always, fails := &counted{name: "once", once: true}, &counted{name: "always"}, &counted{
		name: "fails", once: true, err: errors.New("no"),
	}
	done, err := Run(context.Background(), []Prestart{once, always, fails}, nil, nil)
	require.ErrorContains(t, err, `prestart hook "fails" failed: no`)
	fails.err = nil
	done, err = Run(context.Background(), []Prestart{once, always, fails}, nil, done)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"once": true, "fails": true}, done)
	require.Equal(t, []int{1, 2, 2}, []int{once.runs, always.runs, fails.runs})
}

// Files of the task are the template's to read, and no others: not by a path that leaves, not by a link, and no device.
func TestTemplatesReadFiles(t *testing.T) {
	t.Parallel()
	r := newRequest(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.Dirs.Local, "a"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(r.Dirs.Local, "link")))
	h := rendersIn(t, clock.Wall{})
	r.Task.Templates = []*drover.Template{{EmbeddedTmpl: `{{ file "local/a" }} {{ file "/local/a" }}`, DestPath: "local/out"}}
	require.NoError(t, h.Prestart(t.Context(), r))
	require.Equal(t, "text text", read(t, r.Dirs.Local, "out"))
	for path, says := range map[string]string{
		"/etc/passwd": "escapes the allocation's folder", "../../../../etc/passwd": "escapes", "local/link": "escapes",
		"local/nope": "no such file", "local": "is not a regular file",
	} {
		r.Task.Templates[0].EmbeddedTmpl = `{{ file "` + path + `" }}`
		require.ErrorContains(t, h.Prestart(t.Context(), r), says, path)
	}
	r.Task.Templates[0].EmbeddedTmpl = `{{ with nomadVar "a" }}{{ . }}{{ end }}`
	require.ErrorContains(t, h.Prestart(t.Context(), r), "control answers no templates")
}
