package drivertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// taskChecks are the promises of driver.Driver and driver.Handle.
func taskChecks() []check {
	real := []Ability{Programs}
	return []check{
		{"fingerprint", fingerprint, nil},
		{"unknown option is named", unknownOption, nil},
		{"exit codes", exitCodes, nil},
		{"wait by many and by nobody", waitMany, nil},
		{"stop", stop, nil},
		{"destroy a running task", destroyRunning, nil},
		{"attach after an agent restart", attach, nil},
		{"attach to what is gone", attachGone, nil},
		{"attach to an interrupted start", attachInterrupted, []Ability{Programs}},
		{"usage", usage, nil},
		{"log", logOnce, nil},
		{"command that does not exist", unknownCommand, real},
		{"signal", signal, real},
		{"stop kills after the timeout", stopStubborn, real},
		{"environment and folder", environment, real},
		{"nothing survives the task", leftBehind, real},
		{"logs rotate", logsRotate, real},
		{"many starts and ends at once", manyTasks, real},
	}
}

// fingerprint: the machine of the test has what the driver needs; else every other check would fail with a worse message.
func fingerprint(s *suite) {
	info := s.d.Fingerprint(s.t.Context())
	require.True(s.t, info.Detected)
	require.True(s.t, info.Healthy, info.HealthDescription)
	require.NotEmpty(s.t, s.d.Name())
}

// unknownOption: a misspelt key is refused by name before anything starts, and the same configuration without it is valid.
func unknownOption(s *suite) {
	spec := s.spec(Program{Exit: 0})
	spec.Config["no_such_option"] = 1
	err := s.d.Validate(&drover.Task{Name: "web", Driver: s.d.Name(), Config: spec.Config})
	require.Equal(s.t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(s.t, err, "no_such_option")
	delete(spec.Config, "no_such_option")
	require.NoError(s.t, s.d.Validate(&drover.Task{Name: "web", Driver: s.d.Name(), Config: spec.Config}))
}

// exitCodes: 255 is the highest that the kernel delivers, and no code is taken for a signal.
func exitCodes(s *suite) {
	for _, code := range []int{0, 1, 77, 255} {
		exit := s.wait(s.start(Program{Exit: code}))
		require.Equal(s.t, code, exit.Code)
		require.NoError(s.t, exit.Err)
		require.Zero(s.t, exit.Signal)
	}
}

// waitMany: cancelling one Wait harms neither the task nor the others who wait, and an exit can be read again later.
func waitMany(s *suite) {
	h := s.start(Program{Run: 100 * time.Millisecond, Exit: 9})
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	_, err := h.Wait(ctx)
	require.ErrorIs(s.t, err, context.Canceled)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { // ends with the task
			exit, err := h.Wait(s.t.Context())
			if err != nil || exit.Code != 9 {
				s.t.Errorf("wait: %v, %v", exit, err)
			}
		})
	}
	wg.Wait()
	require.Equal(s.t, 9, s.wait(h).Code)
}

// stop: a stopped task never looks like a success, and stopping it twice is no error.
func stop(s *suite) {
	h := s.start(Program{Run: Long})
	require.NoError(s.t, h.Stop(s.t.Context(), "", patience))
	exit := s.wait(h)
	require.NotZero(s.t, exit.Code)
	require.NoError(s.t, h.Stop(s.t.Context(), "", patience), "a second time")
}

// destroyRunning: Destroy alone ends a running task. Wait may then give an exit or ErrGone, but not success.
func destroyRunning(s *suite) {
	h := s.start(Program{Run: Long})
	require.NoError(s.t, h.Destroy(s.t.Context()))
	exit, err := h.Wait(s.t.Context())
	if err == nil {
		require.NotZero(s.t, exit.Code, "a killed task is not an exit with 0")
	}
	require.Empty(s.t, leftovers(s.alloc, s.root))
}

// attach: a new agent gets handles that work, also of a task that ended while no agent was there to see it.
func attach(s *suite) {
	running := s.start(Program{Run: Long})
	ending := s.start(Program{Run: 200 * time.Millisecond, Exit: 5})
	s.d = s.New(s.t)
	h, err := s.d.Attach(s.t.Context(), running.State())
	require.NoError(s.t, err)
	s.handles = append(s.handles, h)
	require.NoError(s.t, h.Stop(s.t.Context(), "SIGKILL", patience))
	require.Equal(s.t, 137, s.wait(h).Code)
	h, err = s.d.Attach(s.t.Context(), ending.State())
	require.NoError(s.t, err)
	s.handles = append(s.handles, h)
	require.Equal(s.t, 5, s.wait(h).Code)
}

// attachInterrupted: the agent was killed between the driver's start and the storing of its state. A program that was
// executed must not be started a second time.
func attachInterrupted(s *suite) {
	interrupted := func(spec driver.Spec) driver.State {
		return driver.State{Driver: s.d.Name(), ID: spec.ID, AllocID: spec.AllocID, TaskName: spec.TaskName, StateDir: spec.Dirs.State}
	}
	spec := s.spec(Program{Run: Long})
	s.startSpec(spec)
	never := s.spec(Program{Run: Long})
	s.d = s.New(s.t)
	h, err := s.d.Attach(s.t.Context(), interrupted(spec))
	require.NoError(s.t, err)
	s.handles = append(s.handles, h)
	require.Equal(s.t, spec.ID, h.State().ID)
	_, err = s.d.Attach(s.t.Context(), interrupted(never))
	require.ErrorIs(s.t, err, driver.ErrGone)
	require.NoError(s.t, h.Stop(s.t.Context(), "SIGKILL", patience))
	require.Equal(s.t, 137, s.wait(h).Code)
}

// attachGone: a destroyed task is ErrGone, by which the agent knows that it need not look for an exit.
func attachGone(s *suite) {
	h := s.start(Program{Run: Long})
	state := h.State()
	require.NoError(s.t, h.Destroy(s.t.Context()))
	_, err := s.New(s.t).Attach(s.t.Context(), state)
	require.ErrorIs(s.t, err, driver.ErrGone)
}

// usage: a driver that measures at all fills both parts and the time of the sample. A machine without control groups may measure nothing.
func usage(s *suite) {
	h := s.start(Program{Run: Long})
	m, ok := h.(driver.Meter)
	require.True(s.t, ok)
	u, err := m.Usage(s.t.Context())
	if errors.Is(err, driver.ErrNotSupported) {
		s.t.Log("usage is not supported on this machine")
		return
	}
	require.NoError(s.t, err)
	require.NotNil(s.t, u.ResourceUsage.CpuStats)
	require.NotNil(s.t, u.ResourceUsage.MemoryStats)
	require.NotZero(s.t, u.Timestamp)
}

// logOnce: Wait returns only when the output is in the log files, so the test need not wait for it.
func logOnce(s *suite) {
	require.Zero(s.t, s.wait(s.start(Program{Stdout: "to the log"})).Code)
	require.Contains(s.t, s.log("stdout"), "to the log")
}

// unknownCommand: a program that is not there will not come by trying again, and the failed start leaves nothing behind.
func unknownCommand(s *suite) {
	spec := s.spec(Program{})
	spec.Config["command"] = "/no/such/program"
	_, err := s.d.Start(s.t.Context(), spec)
	var start *driver.StartError
	require.ErrorAs(s.t, err, &start)
	require.False(s.t, start.Recoverable)
	require.ErrorContains(s.t, err, "/no/such/program")
	require.Empty(s.t, leftovers(s.alloc, s.root))
}

// signal: an unknown name is an error, and a known one reaches the program; what it prints then is still logged.
func signal(s *suite) {
	h := s.start(Program{Script: `trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.02; done`})
	require.Eventually(s.t, func() bool { return strings.Contains(s.log("stdout"), "ready") }, patience, 5*time.Millisecond)
	require.Error(s.t, h.Signal(s.t.Context(), "SIGNONSENSE"))
	require.NoError(s.t, h.Signal(s.t.Context(), "SIGUSR1"))
	require.Equal(s.t, 3, s.wait(h).Code)
	require.Contains(s.t, s.log("stdout"), "got")
}

// stopStubborn: a program that ignores the signal is killed after the time-out: code 128 + 9.
func stopStubborn(s *suite) {
	h := s.start(Program{Script: `trap '' TERM INT; echo ready; while :; do sleep 0.05; done`})
	require.Eventually(s.t, func() bool { return strings.Contains(s.log("stdout"), "ready") }, patience, 5*time.Millisecond)
	require.NoError(s.t, h.Stop(s.t.Context(), "SIGTERM", 50*time.Millisecond))
	exit := s.wait(h)
	require.Equal(s.t, 137, exit.Code)
	require.Equal(s.t, 9, exit.Signal)
}

// environment: the spec's environment arrives, the working directory is the task's and writable, and the streams are apart.
func environment(s *suite) {
	spec := s.spec(Program{Script: `echo "$GREETING"; pwd >/dev/null && echo "in $(basename "$PWD")"; echo x > local/made; echo err >&2`})
	h := s.startSpec(spec)
	exit := s.wait(h)
	require.Zero(s.t, exit.Code, s.log("stderr"))
	require.Contains(s.t, s.log("stdout"), "hello there\n")
	require.Equal(s.t, "err\n", s.log("stderr"))
	require.FileExists(s.t, filepath.Join(spec.Dirs.Local, "made"))
}

// leftBehind: processes in other sessions, or adopted by another parent, end with the task.
func leftBehind(s *suite) {
	h := s.start(Program{Script: `sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600; :' &); exit 4`})
	require.Equal(s.t, 4, s.wait(h).Code)
	require.NoError(s.t, h.Destroy(s.t.Context()))
	require.Empty(s.t, leftovers(s.alloc, s.root))
}

// logsRotate: the oldest files go, the newest lines stay, and no line is cut at a file's end.
func logsRotate(s *suite) {
	spec := s.spec(Program{Script: `i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done`})
	spec.Log.MaxFileSize = 4000
	require.Zero(s.t, s.wait(s.startSpec(spec)).Code)
	names, err := filepath.Glob(filepath.Join(spec.Log.Dir, "web.stdout.*"))
	require.NoError(s.t, err)
	require.Len(s.t, names, spec.Log.MaxFiles)
	for _, n := range names {
		b, err := os.ReadFile(n)
		require.NoError(s.t, err)
		require.True(s.t, strings.HasPrefix(string(b), "line ") && strings.HasSuffix(string(b), "\n"), "files hold whole lines")
	}
	require.Contains(s.t, s.log("stdout"), "line 2999\n")
}

// manyTasks: parallel starts do not mix up exits. Every start has its own id and state folder, as from the agent.
func manyTasks(s *suite) {
	const tasks = 8
	var specs []driver.Spec
	for i := range tasks {
		spec := s.spec(Program{Exit: i})
		spec.ID += fmt.Sprintf("-%d", i)
		spec.TaskName = fmt.Sprintf("web%d", i)
		spec.Dirs.State += fmt.Sprintf("-%d", i)
		specs = append(specs, spec)
	}
	handles := make([]driver.Handle, tasks)
	var wg sync.WaitGroup
	for i, spec := range specs {
		wg.Go(func() { // ends with its task
			h, err := s.d.Start(s.t.Context(), spec)
			if err != nil {
				s.t.Error(err)
				return
			}
			handles[i] = h
			if exit, err := h.Wait(s.t.Context()); err != nil || exit.Code != i {
				s.t.Errorf("%d: %v, %v", i, exit, err)
			}
		})
	}
	wg.Wait()
	for _, h := range handles {
		if h != nil {
			s.handles = append(s.handles, h)
		}
	}
}
