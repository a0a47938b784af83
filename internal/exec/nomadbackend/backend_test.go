package nomadbackend

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBackend(t *testing.T, address string) *Backend {
	t.Helper()
	b, err := New(Config{Cluster: Cluster{Address: address}}, Deps{
		Clock: clock.Wall{}, IDs: id.NewSeeded(1), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return b
}

// pool fills a backend with runners of an environment: old, ready, starting and claimed ones.
func pool(t *testing.T, e execution.Environment, old, ready, starting, claimed int) *Backend {
	t.Helper()
	b := newBackend(t, "http://127.0.0.1:1")
	require.NoError(t, b.setEnvLocked(e))
	gen := b.envs[e.ID].generation
	add := func(n int, kind, gen string, claim *drover.Claim) {
		for i := range n {
			r := &runnerJob{id: fmt.Sprint(kind, i), env: e.ID, generation: gen, claim: claim}
			b.runners[r.id] = r
			status := drover.AllocClientRunning
			if kind == "starting" {
				status = drover.AllocClientPending
			}
			b.setAllocLocked(r, &drover.Allocation{ID: r.id, ClientStatus: status, DesiredStatus: drover.AllocDesiredRun})
		}
	}
	add(old, "old", "before", nil)
	add(ready, "ready", gen, nil)
	add(starting, "starting", gen, nil)
	add(claimed, "claimed", gen, &drover.Claim{})
	return b
}

func TestPoolsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, most, demand            int
		old, ready, starting, claimed int
		place, surplus                int
	}{
		"empty":                   {size: 5, place: 5},
		"full":                    {size: 5, ready: 3, starting: 2, claimed: 9},
		"shrinks":                 {size: 2, ready: 4, starting: 1, surplus: 3},
		"bounded":                 {size: 5, most: 6, ready: 1, claimed: 4, place: 1},
		"bounded and over":        {size: 5, most: 6, ready: 3, claimed: 4, surplus: 1},
		"demand":                  {size: 0, demand: 3, ready: 1, place: 2},
		"a quarter goes over":     {size: 8, old: 8, place: 2},
		"while those start":       {size: 8, old: 8, starting: 2},
		"old ones leave":          {size: 8, old: 8, ready: 2, place: 2, surplus: 2},
		"the last old ones leave": {size: 8, old: 2, ready: 8, surplus: 2},
	} {
		e := execution.Environment{ID: "e", Image: "host", PoolSize: c.size, MaxRunners: c.most}
		b := pool(t, e, c.old, c.ready, c.starting, c.claimed)
		b.setDemandLocked(runner.Demand{Environment: "e", Runners: c.demand})
		place, surplus := b.compareLocked("e", b.envs["e"])
		require.Equal(t, c.place, place, name)
		require.Len(t, surplus, c.surplus, name)
		for _, r := range surplus {
			require.Nil(t, r.claim, name)
		}
	}
}

func TestJobsCarryWhatIsReadBack(t *testing.T) {
	t.Parallel()
	b := newBackend(t, "http://127.0.0.1:1")
	e := execution.Environment{ID: "e", Image: "python:3", PoolSize: 3, Network: true, ExposedPorts: []uint16{80}, Driver: "docker"}
	job, err := b.environmentJob(e)
	require.NoError(t, err)
	back, ok := readEnvironment(job)
	require.True(t, ok)
	require.Equal(t, e, back)
	job, err = b.runnerJobOf(&runnerJob{id: runnerPrefix + "x", generation: "g"}, e)
	require.NoError(t, err)
	task := job.TaskGroups[0].Tasks[0]
	require.Equal(t, map[string]any{"image": "python:3", "command": "sleep", "args": []string{"infinity"}, "ports": []any{"80"}}, task.Config)
	require.Equal(t, "0", task.User, "privileged executions are root's")
	r, ok := readRunner(job)
	require.True(t, ok)
	require.Equal(t, "e", r.env)
	require.Equal(t, "g", r.generation)
	require.Nil(t, r.claim)
	_, ok = readRunner(&api.Job{ID: new("foreign"), TaskGroups: []*api.TaskGroup{{Name: new("web")}}})
	require.False(t, ok)
}

func TestGenerationsDifferWithWhatRunnersAreMadeOf(t *testing.T) {
	t.Parallel()
	b := newBackend(t, "http://127.0.0.1:1")
	e := execution.Environment{ID: "e", Image: "host", PoolSize: 3}
	first, err := generation(e, b.cfg.Environments)
	require.NoError(t, err)
	same := e
	same.PoolSize, same.IdleTimeout, same.Env = 9, time.Hour, map[string]string{"A": "b"}
	second, err := generation(same, b.cfg.Environments)
	require.NoError(t, err)
	require.Equal(t, first, second)
	other := e
	other.MemoryMaxMB = 77
	third, err := generation(other, b.cfg.Environments)
	require.NoError(t, err)
	require.NotEqual(t, first, third)
}

func TestWrappedCommandsGetTheirArgumentsAsTheyAre(t *testing.T) {
	t.Parallel()
	odd := "a 'b' \"c\"\n$HOME `x` \\"
	argv := wrap(execution.Spec{
		ID: "x1", Privileged: true, WorkDir: "/tmp", Env: map[string]string{"ODD": odd},
		Argv: []string{"/bin/sh", "-c", `printf %s "$1|$ODD|$PWD|$DROVER_EXECUTION|$NOMAD_JOB_ID"`, "sh", odd},
	})
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "NOMAD_JOB_ID=secret"}
	out, err := cmd.Output()
	require.NoError(t, err)
	c := newCutter("x1")
	require.Equal(t, odd+"|"+odd+"|/tmp|x1|", string(c.take(out)))
	require.True(t, c.ended)
	require.Zero(t, c.code)
}

// Busybox's setpriv knows no users, but its su does.
func TestBecomingAUserInABusyboxImage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setpriv, want string }{
		"util-linux": {
			"case $1 in --help) echo ' --reuid <uid|user>';; *) echo setpriv $1; shift 3; exec \"$@\";; esac",
			"setpriv --reuid=nobody\nA=b\n",
		},
		"busybox": {"echo 'Usage: setpriv [OPTIONS] PROG ARGS' >&2; exit 1", "su nobody\nA=b\n"},
	} {
		bin := t.TempDir()
		for tool, script := range map[string]string{
			"id": "echo 0", "setpriv": c.setpriv, "su": "echo su $3; [ $6 = -- ] || exit 1; c=$5; shift 6; exec /bin/sh -c \"$c\" \"$@\"",
		} {
			programtest.Write(t, filepath.Join(bin, tool), []byte("#!/bin/sh\n"+script+"\n"))
		}
		argv := wrap(execution.Spec{ID: "x", Argv: []string{"/bin/sh", "-c", "echo A=$A"}, Env: map[string]string{"A": "b"}})
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		out, err := cmd.Output()
		require.NoError(t, err, name)
		require.Contains(t, string(out), c.want, name)
	}
}

func TestTrailersAreCutOff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		output string
		ended  bool
		code   int
	}{
		"abc\x1eid 7\x1e":             {"abc", true, 7},
		"\x1eid 0\x1elate":            {"", true, 0},
		"abc":                         {"abc", false, 0},
		"a\x1eidea \x1e\x1ei":         {"a\x1eidea \x1e\x1ei", false, 0},
		"\x1e\x1e\x1eid 130\x1e":      {"\x1e\x1e", true, 130},
		"cut within \x1eid 13":        {"cut within \x1eid 13", false, 0},
		"\x1eid no code\x1e and more": {"\x1eid no code\x1e and more", false, 0},
	} {
		for step := 1; step <= len(text); step++ {
			c := newCutter("id")
			var out []byte
			for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
				out = append(out, c.take([]byte(rest[:min(step, len(rest))]))...)
			}
			out = append(out, c.rest()...)
			require.Equal(t, want.output, string(out), "%q in steps of %d", text, step)
			require.Equal(t, want.ended, c.ended, "%q", text)
			require.Equal(t, want.code, c.code, "%q", text)
		}
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	i, err := parseStat("81a4 5 1700000000 0 33 root www data")
	require.NoError(t, err)
	require.Equal(
		t,
		execution.FileInfo{
			Type: "-", Mode: 0o644, Size: 5, ModTime: time.Unix(1_700_000_000, 0).UTC(), GID: 33, Owner: "root", Group: "www data",
		},
		i,
	)
	for _, bad := range []string{"", "x y", "zz 5 1 0 0 a b", "81a4 5 x 0 0 a b"} {
		_, err := parseStat(bad)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), bad)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestTheClusterIsAway(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer s.Close()
	b := newBackend(t, s.URL)
	_, err := b.Workloads("")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	e := execution.Environment{ID: "e", Image: "host"}
	job, err := b.environmentJob(e)
	require.NoError(t, err)
	_, _, err = b.client.Jobs().Register(job, nil)
	require.Equal(t, drover.Forbidden, drover.CodeOf(b.reached(err)))
	b.client.Close()
}

// Asked for a file, a listing has the file, as the one of a supervisor does.
func TestListing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a 'b"), []byte("xyz"), 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	list := func(path string) (found []string) {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(listScript, "$2", "-maxdepth 1", 1), "sh", path).Output()
		require.NoError(t, err)
		infos, err := parseListing(string(out))
		require.NoError(t, err)
		for _, i := range infos {
			found = append(found, fmt.Sprintf("%s%s %d %s", i.Type, i.Path, i.Size, i.LinkTarget))
		}
		return found
	}
	require.Equal(t, []string{"-a 'b 3 ", "llink 7 nowhere"}, list(dir))
	require.Equal(t, []string{"-a 'b 3 "}, list(filepath.Join(dir, "a 'b")))
	require.Error(t, exec.CommandContext(t.Context(), "sh", "-c", listScript, "sh", filepath.Join(dir, "none")).Run())
}
