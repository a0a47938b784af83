package drivertest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/sharetest"
)

// Ability is something that not every driver can have.
type Ability string

// The abilities.
const (
	Programs Ability = "programs" // the task runs a real program: logs, environment, working directory, process trees
	Shell    Ability = "shell"    // executions are run by a real /bin/sh
	Terminal Ability = "terminal" // executions may have a terminal
	Users    Ability = "users"    // executions may run as other users
	Links    Ability = "links"    // the file system has symbolic links
	Groups   Ability = "groups"   // control groups hold the task to its limits
	// Isolation: a task sees neither the machine nor other tasks. Without it these are not tried: they could do harm.
	Isolation Ability = "isolation"
	// Guard: not even the task's root can look into its supervisor, or end it, and with it the task, by a signal.
	Guard Ability = "guard"
)

// Harness tells the suite how to use a driver.
type Harness struct {
	// New returns the driver on one and the same machine; called again by the same test, it is the agent after a restart. Two tests have
	// two agents, which work at once: their drivers have nothing in one folder.
	New func(t *testing.T) driver.Driver
	// Config makes a task's configuration out of what its program shall do.
	Config func(p Program) map[string]any
	// Missing names the abilities that this driver does not have, and why.
	Missing map[Ability]string
	// Prepare, if set, changes a spec before the start.
	Prepare func(t *testing.T, spec *driver.Spec)
	// Leftovers lists what the driver has on the machine, in words; it must be the same before and after. The suite
	// looks for the processes, mounts, control groups and supervisor folders of its tasks by itself.
	Leftovers func(t *testing.T) []string
	// Many is how many executions run at once; default 50.
	Many int
}

// Program is what a task's program does: it prints, waits, and ends.
type Program struct {
	Script string        // for real programs: run by /bin/sh -c; else the following
	Stdout string        // printed at once, with a newline
	Run    time.Duration // then it runs for so long
	Exit   int           // then it exits so
}

// ShellScript is the program for /bin/sh -c.
func (p Program) ShellScript() string {
	if p.Script != "" {
		return p.Script
	}
	var b strings.Builder
	if p.Stdout != "" {
		fmt.Fprintf(&b, "echo '%s'; ", p.Stdout)
	}
	if p.Run > 0 {
		fmt.Fprintf(&b, "sleep %f; ", p.Run.Seconds())
	}
	fmt.Fprintf(&b, "exit %d", p.Exit)
	return b.String()
}

// Long is a time that no test waits for.
const Long = 10 * time.Minute

// patience is how long the suite waits for what happens at once on a quiet machine; long, because tests share theirs.
const patience = 2 * time.Minute // a daemon on a busy machine takes half a minute to remove a container

// suite is one test's driver, folders and tasks.
type suite struct {
	Harness
	t     *testing.T
	d     driver.Driver
	root  string
	alloc string
	// started or attached; close destroys all of them
	handles []driver.Handle
}

// suite makes one check's driver and folders. Real programs take a share of the machine first, so that parallel packages do not slow each
// other beyond patience.
func (h Harness) suite(t *testing.T) *suite {
	t.Helper()
	if h.Missing[Programs] == "" {
		sharetest.Take(t)
	}
	var id [8]byte
	_, _ = rand.Read(id[:])                     // never fails
	root, err := os.MkdirTemp("", "drivertest") // short: sockets have short names
	require.NoError(t, err)
	require.NoError(t, os.Chmod(root, 0o755)) // tasks of other users start in it
	s := &suite{Harness: h, t: t, d: h.New(t), root: root, alloc: "dt" + hex.EncodeToString(id[:])}
	t.Cleanup(s.close)
	return s
}

// close destroys everything twice, and looks for what is left.
func (s *suite) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// The second round tries that Destroy is idempotent.
	for range 2 {
		for _, h := range s.handles {
			require.NoError(s.t, h.Destroy(ctx))
		}
	}
	require.Empty(s.t, leftovers(s.alloc, s.root))
	require.NoError(s.t, os.RemoveAll(s.root))
}

// spec is a task with all its folders.
func (s *suite) spec(p Program) driver.Spec {
	s.t.Helper()
	alloc := filepath.Join(s.root, "alloc")
	d := driver.Dirs{Alloc: alloc, Shared: filepath.Join(alloc, "alloc"), Task: filepath.Join(alloc, "web")}
	d.Local, d.Secrets = filepath.Join(d.Task, "local"), filepath.Join(d.Task, "secrets")
	d.State = filepath.Join(s.root, "state", fmt.Sprint(len(s.handles)))
	logs := filepath.Join(d.Shared, "logs")
	for _, dir := range []string{logs, filepath.Join(d.Shared, "data"), d.Local, d.Secrets} {
		require.NoError(s.t, os.MkdirAll(dir, 0o777))
		require.NoError(s.t, os.Chmod(dir, 0o777)) // as the agent makes them
	}
	id := fmt.Sprintf("%s-%d", s.alloc, len(s.handles))
	spec := driver.Spec{
		AllocID: id, TaskName: "web", ID: id + "/web/0", Job: "job", Group: "group",
		Config: s.Config(p), Dirs: d, CPUMHz: 100, MemoryMB: 256, DiskMB: 100,
		Env: map[string]string{"NOMAD_ALLOC_ID": id, "NOMAD_TASK_NAME": "web", "GREETING": "hello there", "PATH": "/usr/local/bin:/usr/bin:/bin"},
		Log: driver.LogConfig{Dir: logs, MaxFiles: 3, MaxFileSize: 1 << 20},
	}
	if s.Prepare != nil {
		s.Prepare(s.t, &spec)
	}
	return spec
}

// start starts a task that close destroys.
func (s *suite) start(p Program) driver.Handle {
	s.t.Helper()
	return s.startSpec(s.spec(p))
}

// startSpec is start for a spec that the check has changed.
func (s *suite) startSpec(spec driver.Spec) driver.Handle {
	s.t.Helper()
	h, err := s.d.Start(s.t.Context(), spec)
	require.NoError(s.t, err)
	s.handles = append(s.handles, h)
	return h
}

// pool starts a warm runner.
func (s *suite) pool() driver.Handle {
	s.t.Helper()
	spec := s.spec(Program{})
	// What makes a program, in any driver's configuration, is taken out: a warm runner has none.
	spec.Pool = true
	delete(spec.Config, "command")
	delete(spec.Config, "args")
	delete(spec.Config, "run_for")
	return s.startSpec(spec)
}

// wait returns a task's exit; one that takes longer than patience fails the test.
func (s *suite) wait(h driver.Handle) driver.Exit {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	exit, err := h.Wait(ctx)
	require.NoError(s.t, err)
	return exit
}

// log returns what is left of one stream's log files, joined by name: right for fewer than eleven of them.
func (s *suite) log(stream string) string {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.root, "alloc/alloc/logs/web."+stream+".*"))
	require.NoError(s.t, err)
	var all []byte
	for _, n := range names {
		b, err := os.ReadFile(n)
		require.NoError(s.t, err)
		all = append(all, b...)
	}
	return string(all)
}

// result is all that a session delivered.
type result struct {
	stdout, stderr []byte
	started        bool
	skipped        bool
	receipt        *execution.Receipt
}

// collect reads a session to its end, and checks the order of what comes.
func collect(t *testing.T, s execution.Session, from execution.Offsets) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var r result
	next := [2]int64{from.Stdout, from.Stderr}
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			require.NotNil(t, r.receipt, "the session ended without a receipt")
			return r
		}
		require.NoError(t, err)
		require.Nil(t, r.receipt, "the receipt is the last frame")
		switch {
		case f.Started:
			r.started = true
		case f.Receipt != nil:
			r.receipt = f.Receipt
		default:
			i := f.Stream - execution.Stdout
			r.skipped = r.skipped || f.Skipped
			if !f.Skipped {
				require.Equal(t, next[i], f.Offset)
			}
			next[i] = f.Offset + int64(len(f.Data))
			if i == 0 {
				r.stdout = append(r.stdout, f.Data...)
			} else {
				r.stderr = append(r.stderr, f.Data...)
			}
		}
	}
}

// exec runs an execution to its receipt and closes its session. An error fails the test; a command that fails does not.
func (s *suite) exec(h driver.Handle, spec execution.Spec) result {
	s.t.Helper()
	session, err := h.(driver.Execer).StartExecution(s.t.Context(), spec)
	require.NoError(s.t, err)
	r := collect(s.t, session, execution.Offsets{})
	require.NoError(s.t, session.Close())
	return r
}

// sh is an execution of a script. The fake driver knows the few scripts of the checks that it is not excused from.
func sh(script string) execution.Spec {
	return execution.Spec{Argv: []string{"/bin/sh", "-c", script}}
}

// until reads a session until stdout ends with the text.
func until(t *testing.T, s execution.Session, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got string
	for !strings.HasSuffix(got, text) {
		f, err := s.Next(ctx)
		require.NoError(t, err)
		require.Nil(t, f.Receipt, "it ended before %q: %q", text, got)
		got += string(f.Data)
	}
	return got
}
