package hook

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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

func tarball(t *testing.T, headers ...tar.Header) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, h := range headers {
		data := []byte("data of " + h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size, h.Mode = int64(len(data)), 0o755
		}
		require.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write(data)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return buf.Bytes()
}

func zipped(t *testing.T, names ...string) []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, n := range names {
		f, err := w.Create(n)
		require.NoError(t, err)
		_, err = f.Write([]byte("data of " + n))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// bomb is a small file that unpacks to one of that size.
func bomb(t *testing.T, kind byte, size int64) []byte {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "x", Typeflag: kind, Size: size, Mode: 0o644}))
	_, err = io.Copy(w, io.LimitReader(zeros{}, size))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return buf.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// directory is a zip file of nothing but entries of its directory, which are held in memory.
func directory(entries int) []byte {
	entry := make([]byte, 50)
	copy(entry, "PK\x01\x02")
	entry[28] = 4 // a name's length
	list := bytes.Repeat(entry, entries)
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], uint16(entries))
	binary.LittleEndian.PutUint16(end[10:], uint16(entries))
	binary.LittleEndian.PutUint32(end[12:], uint32(len(list)))
	return append(list, end...)
}

// What is not written counts as well, and what ends does so at once.
func TestUnpackingIsBounded(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	packed, err := gzip.NewReader(bytes.NewReader(bomb(t, 'Z', 4<<20))) // of a kind that is left out
	require.NoError(t, err)
	u := &unpacker{ctx: t.Context(), root: root, base: ".", left: 1 << 20, entries: 10}
	require.Equal(t, drover.TooLarge, drover.CodeOf(u.tar(&unpacked{ctx: t.Context(), r: packed, left: 1 << 20})))

	long := filepath.Join(t.TempDir(), "long.zip")
	require.NoError(t, os.WriteFile(long, directory(maxDirectory/50+1), 0o600))
	f, err := os.Open(long)
	require.NoError(t, err)
	defer f.Close()
	require.ErrorContains(t, unpack(t.Context(), root, f, ".", "zip", 1<<20, 100), "the directory of the zip file has more than")

	ended, end := context.WithCancel(t.Context())
	end()
	for kind, data := range map[string][]byte{"tar.gz": bomb(t, tar.TypeReg, 1), "zip": zipped(t, "a")} {
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		require.ErrorIs(t, unpack(ended, root, f, ".", kind, 1<<20, 100), context.Canceled, kind)
		require.NoError(t, f.Close())
	}
}

// fetched is an artifact and what becomes of it.
type fetched struct {
	name     string
	artifact drover.TaskArtifact
	want     map[string]string // path in the task's folder → content
	err      string
	again    bool // recoverable
}

// fetchedFrom are artifacts of a server, and one of a file of this machine. sum is that of "hello".
func fetchedFrom(server, local, sum string) []fetched {
	return []fetched{
		{
			name: "plain", artifact: drover.TaskArtifact{GetterSource: server + "/a.txt?checksum=" + sum},
			want: map[string]string{"local/a.txt": "hello"},
		},
		{
			name:     "file mode",
			artifact: drover.TaskArtifact{GetterSource: server + "/a.txt", GetterMode: "file", RelativeDest: "local/sub/name"},
			want:     map[string]string{"local/sub/name": "hello"},
		},
		{
			name: "tar", artifact: drover.TaskArtifact{GetterSource: server + "/x.tar.gz"},
			want: map[string]string{"local/d/f": "data of d/f", "local/l": "data of d/f"},
		},
		{
			name: "zip", artifact: drover.TaskArtifact{GetterSource: server + "/y.zip", RelativeDest: "local/z"},
			want: map[string]string{"local/z/q/r": "data of q/r"},
		},
		{
			name: "packed stays packed",
			artifact: drover.TaskArtifact{
				GetterSource: server + "/a.txt", GetterOptions: map[string]string{"archive": "false", "checksum": sum},
			},
			want: map[string]string{"local/a.txt": "hello"},
		},
		{
			name: "from disk", artifact: drover.TaskArtifact{GetterSource: "file://" + local},
			want: map[string]string{"local/local.txt": "from disk"},
		},
		{
			name:     "wrong sum",
			artifact: drover.TaskArtifact{GetterSource: server + "/a.txt", GetterOptions: map[string]string{"checksum": "md5:00"}},
			err:      "checksum",
		},
		{name: "leads out", artifact: drover.TaskArtifact{GetterSource: server + "/evil.tar.gz"}, err: "leads out"},
		{name: "leads out by a link", artifact: drover.TaskArtifact{GetterSource: server + "/link.tar.gz"}, err: "escapes", again: true},
		{name: "zip leads out", artifact: drover.TaskArtifact{GetterSource: server + "/evil.zip"}, err: "leads out"},
		{name: "broken", artifact: drover.TaskArtifact{GetterSource: server + "/broken.zip"}, err: "unpacking"},
		{name: "too big", artifact: drover.TaskArtifact{GetterSource: server + "/big"}, err: "more than"},
		{
			name: "a bomb", artifact: drover.TaskArtifact{GetterSource: server + "/bomb.tar.gz"},
			err: "unpacking: more than 1048576 bytes, which are what the node takes (client.artifact.decompression_size_limit)",
		},
		{
			name: "too many", artifact: drover.TaskArtifact{GetterSource: server + "/many.tar.gz"},
			err: "unpacking: more than 100 files, which the node's client.artifact.decompression_file_count_limit allows",
		},
		{name: "not there", artifact: drover.TaskArtifact{GetterSource: server + "/nope"}, err: "404", again: true},
		{
			name: "headers", artifact: drover.TaskArtifact{GetterSource: server + "/a.txt", GetterHeaders: map[string]string{"X-Colour": "red"}},
			err: "404", again: true,
		},
		{name: "git", artifact: drover.TaskArtifact{GetterSource: "git::https://example.org/x"}, err: "getter"},
		{name: "destination", artifact: drover.TaskArtifact{GetterSource: server + "/a.txt", RelativeDest: "../../../x"}, err: "escapes"},
		{name: "no scheme", artifact: drover.TaskArtifact{GetterSource: "github.com/x"}, err: "needs http"},
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"/a.txt": []byte("hello"),
		"/x.tar.gz": tarball(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "d/f", Typeflag: tar.TypeReg},
			tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "d/f"}, tar.Header{Name: "dev", Typeflag: tar.TypeChar}),
		"/y.zip":       zipped(t, "q/r"),
		"/evil.tar.gz": tarball(t, tar.Header{Name: "../../../evil", Typeflag: tar.TypeReg}),
		"/link.tar.gz": tarball(
			t, tar.Header{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, tar.Header{Name: "out/evil", Typeflag: tar.TypeReg},
		),
		"/evil.zip":    zipped(t, "../evil"),
		"/broken.zip":  []byte("nothing"),
		"/big":         make([]byte, 2<<20),
		"/bomb.tar.gz": bomb(t, tar.TypeReg, 2<<20),
		"/many.tar.gz": tarball(t, slices.Repeat([]tar.Header{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}}, 101)...),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, ok := files[q.URL.Path]
		if !ok || q.Header.Get("X-Colour") == "red" {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	h := artifacts{Settings{HTTP: &http.Client{Transport: transport}, ArtifactSize: 1 << 20, ArtifactUnpacked: 1 << 20, ArtifactFiles: 100}}
	local := filepath.Join(t.TempDir(), "local.txt")
	require.NoError(t, os.WriteFile(local, []byte("from disk"), 0o600))
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("hello")))

	for _, test := range fetchedFrom(server.URL, local, sum) {
		t.Run(test.name, func(t *testing.T) {
			r := newRequest(t)
			r.Task.Artifacts = []*drover.TaskArtifact{&test.artifact}
			err := h.Prestart(context.Background(), r)
			if test.err != "" {
				var f *Failure
				require.ErrorAs(t, err, &f)
				require.ErrorContains(t, err, test.err)
				require.Equal(t, drover.TaskDownloadFailed, f.Type)
				require.Equal(t, test.again, f.Recoverable, "%v", err)
				for _, name := range []string{"a.txt", "big"} {
					require.NoFileExists(t, filepath.Join(r.Dirs.Local, name), "half a file, or one with another checksum")
				}
				return
			}
			require.NoError(t, err)
			for path, want := range test.want {
				require.Equal(t, want, read(t, r.Dirs.Task, path))
			}
			left, err := filepath.Glob(filepath.Join(r.Dirs.Alloc, ".artifact-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
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
		require.ErrorAs(t, artifacts{Settings{ArtifactSize: 1}}.Prestart(t.Context(), r), &f, path)
		require.False(t, f.Recoverable, path)
		require.Equal(t, drover.Invalid, drover.CodeOf(f.Err))
	}
	r := newRequest(t)
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
