package program

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

func TestLaterVariablesWin(t *testing.T) {
	t.Parallel()
	base := map[string]string{"PATH": "/bin", "HOME": "/"}
	env := environment(base, map[string]string{"B": "1", "HOME": "/x"}, nil, map[string]string{"B": "2=3", "A": ""})
	require.Equal(t, []string{"A=", "B=2=3", "HOME=/x", "PATH=/bin"}, env)
	require.Equal(t, "/", base["HOME"], "the given maps stay as they are")
	require.Equal(t, "2=3", envValue(env, "B"))
	require.Empty(t, envValue(env, "C"))
}

func TestHiddenVariables(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NOMAD_TOKEN": "x", "NOMAD": "y", "A": "NOMAD_"}
	require.Equal(t, map[string]string{"NOMAD": "y", "A": "NOMAD_"}, Visible(env, "NOMAD_"))
	require.Len(t, env, 3)
	require.Equal(t, env, Visible(env, ""))
	require.Empty(t, Visible(nil, "x"))
}

func TestFindingAProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{
		"one/run": 0o755, "two/run": 0o755, "two/plain": 0o644, "one/other/x": 0o755, "three/plain": 0o700,
	} {
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, nil, mode))
	}
	one, two, three := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "three")
	for _, c := range []struct {
		name, search, want string
		errno              syscall.Errno
	}{
		{"run", one + ":" + two, one + "/run", 0},
		{"run", two + ":" + one, two + "/run", 0},
		{"run", "two:" + one, two + "/run", 0}, // from the working directory
		{"run", "/none:" + one, one + "/run", 0},
		{"plain", two, "", syscall.EACCES},
		{"plain", two + ":" + three, three + "/plain", 0},
		{"other", one, "", syscall.ENOENT}, // a folder
		{"none", one, "", syscall.ENOENT},
		{"", one, "", syscall.ENOENT},
		{"run", "", "", syscall.ENOENT},
		{"./run", one, "./run", 0}, // whoever executes it looks
		{"/x/y", "", "/x/y", 0},
	} {
		got, errno := lookPath(c.name, dir, c.search)
		require.Equal(t, c.want, got, "%s in %s", c.name, c.search)
		require.Equal(t, c.errno, errno, "%s in %s", c.name, c.search)
	}
}

func launcher(boot wire.Boot) *Launcher {
	l := &Launcher{Clock: clock.Wall{}, Reaper: process.NewReaper(), Accounts: account.Open("/etc/passwd", "/etc/group")}
	l.Configure(boot)
	return l
}

func TestResolvingACommand(t *testing.T) {
	t.Parallel()
	l := launcher(wire.Boot{WorkDir: "/tmp", Drop: 5, Ambient: 2, CgroupNamespace: true, UID: uint32(os.Geteuid())})
	s, err := l.Resolve(Command{Argv: []string{"sh", "-c", "x"}, Env: []map[string]string{{"A": "b"}}})
	require.NoError(t, err)
	require.Equal(t, "/tmp", s.Dir)
	require.True(t, strings.HasSuffix(s.Path, "/sh"))
	require.Equal(t, []string{"sh", "-c", "x"}, s.Argv)
	require.Contains(t, s.Env, "A=b")
	require.Contains(t, s.Env, "PATH="+defaultPath)
	require.NotEmpty(t, envValue(s.Env, "HOME"))
	require.Equal(t, uint64(5), s.Drop)
	require.Equal(t, uint64(2), s.Ambient)
	require.True(t, s.CgroupNamespace)
	require.True(t, s.ResetOOM)
	for dir, want := range map[string]string{"sub": "/tmp/sub", "/abs": "/abs", "../x": "/x"} {
		s, err := l.Resolve(Command{Argv: []string{"/bin/sh"}, Dir: dir})
		require.NoError(t, err)
		require.Equal(t, want, s.Dir)
	}
	s, err = l.Resolve(Command{Argv: []string{"/bin/sh"}, Env: []map[string]string{{"PATH": "/none"}}})
	require.NoError(t, err)
	require.Equal(t, "/none", envValue(s.Env, "PATH"))
	_, err = l.Resolve(Command{Argv: []string{"sh"}, Env: []map[string]string{{"PATH": "/none"}}})
	var failure *Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, Failure{exitNotFound, "command not found: sh"}, *failure)
	_, err = l.Resolve(Command{Argv: []string{"sh"}, User: "nobody-here"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestAConfigurationHasAGrace(t *testing.T) {
	t.Parallel()
	require.Equal(t, defaultGrace, launcher(wire.Boot{}).Boot().Grace)
	require.Equal(t, time.Hour, launcher(wire.Boot{Grace: time.Hour}).Boot().Grace)
}

func TestWhyACommandCannotBeStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step  spawn.Step
		errno syscall.Errno
		exit  int
		text  string
	}{
		{spawn.StepExec, syscall.ENOENT, 127, "command not found: prog"},
		{spawn.StepExec, syscall.EACCES, 126, "permission denied: prog"},
		{spawn.StepExec, syscall.ENOEXEC, 126, "not a program (no #! line?): prog"},
		{spawn.StepExec, syscall.E2BIG, 126, "executing the program: argument list too long"},
		{spawn.StepDir, syscall.ENOENT, 126, "no such directory: /dir"},
		{spawn.StepDir, syscall.ENOTDIR, 126, "not a directory: /dir"},
		{spawn.StepDir, syscall.EACCES, 126, "cannot enter directory /dir: permission denied"},
		{spawn.StepRlimit, syscall.EPERM, 126, "setting resource limits: operation not permitted"},
		{spawn.StepFork, syscall.EAGAIN, 126, "forking: resource temporarily unavailable"},
	} {
		err := explain(&spawn.Error{Step: c.step, Errno: c.errno}, "prog", "/dir")
		var failure *Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, Failure{c.exit, c.text}, *failure)
		require.EqualError(t, err, c.text)
	}
	require.Equal(t, os.ErrClosed, explain(os.ErrClosed, "prog", "/dir"), "what is no failed start stays what it is")
	require.EqualError(t, CannotRun(syscall.EMFILE), "too many open files")
}

// status of a process that exited with a code, or was ended by a signal.
func status(code int, signal syscall.Signal) syscall.WaitStatus {
	return syscall.WaitStatus(code<<8 | int(signal))
}

// TestHowEndsAreTold: a killed program is never one that exited with 0.
func TestHowEndsAreTold(t *testing.T) {
	t.Parallel()
	limited := execution.Spec{Limits: drover.Limits{CPU: time.Second}}
	for _, c := range []struct {
		status syscall.WaitStatus
		cause  execution.Cause
		spec   execution.Spec
		exit   int
		signal int
		want   execution.Cause
	}{
		{status(0, 0), "", execution.Spec{}, 0, 0, execution.CauseExited},
		{status(3, 0), "", execution.Spec{}, 3, 0, execution.CauseExited},
		{status(0, syscall.SIGTERM), "", execution.Spec{}, 143, 15, execution.CauseSignalled},
		{status(0, syscall.SIGXCPU), "", limited, 128 + 24, 24, execution.CauseCPULimit},
		{status(0, syscall.SIGXCPU), "", execution.Spec{}, 128 + 24, 24, execution.CauseSignalled},
		{status(0, syscall.SIGKILL), execution.CauseTimeout, execution.Spec{}, 137, 9, execution.CauseTimeout},
		{status(0, 0), execution.CauseOOM, execution.Spec{}, 137, 0, execution.CauseOOM},
		{status(5, 0), execution.CauseKilled, execution.Spec{}, 5, 0, execution.CauseKilled},
	} {
		child := process.Unstarted()
		child.Status, child.Usage = c.status, syscall.Rusage{Utime: syscall.Timeval{Sec: 2}, Maxrss: 1}
		r := Ended(child, process.Used{User: time.Second, System: time.Second, Peak: 1 << 20}, c.cause, c.spec)
		require.Equal(t, []any{c.exit, c.signal, c.want}, []any{r.ExitCode, r.Signal, r.Cause}, "%#x %s", c.status, c.cause)
		require.Equal(t, []time.Duration{3 * time.Second, time.Second}, []time.Duration{r.UserCPU, r.SystemCPU})
		require.Equal(t, int64(1<<20), r.PeakMemory)
	}
}

func TestLimitsOfOpenFiles(t *testing.T) {
	t.Parallel()
	var own syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own))
	require.Equal(t, spawn.Rlimit{Resource: unix.RLIMIT_NOFILE, Cur: min(defaultOpenFiles, own.Max), Max: own.Max}, OpenFiles(0))
	require.Equal(t, spawn.Rlimit{Resource: unix.RLIMIT_NOFILE, Cur: 10, Max: 10}, OpenFiles(10))
	require.Equal(t, own.Max, OpenFiles(math.MaxInt).Cur, "nobody gets more than we have")
}
