package executions

import (
	"errors"
	"sync"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// start starts a command with its first session. A command that cannot be started is a receipt. fds are the files of its
// control group.
func (t *Table) start(req wire.Exec, fds []int, first *Session) (*command, *execution.Receipt, error) {
	spec := req.Spec
	x := &command{table: t, Launcher: t.launcher, spec: spec, sessions: map[*Session]bool{first: true}, tree: process.NewTree(fds)}
	x.cond = sync.NewCond(&x.mu)
	if err := t.claim(x); err != nil {
		x.tree.Close()
		return nil, nil, err
	}
	// The id is claimed before the user and the program are looked up, so a repeated request is a conflict from the start.
	given, err := x.takeSecrets()
	var prog spawn.Spec
	if err == nil {
		prog, err = t.launcher.Resolve(commandOf(spec, t.launcher.Boot().Env, given))
	}
	if err == nil {
		err = x.writeSecrets(prog.User)
	}
	if err == nil {
		err = x.run(prog, req.Clone)
	}
	if err == nil {
		return x, nil, nil
	}
	t.forget(x)
	x.tree.Close()
	x.removeSecrets()
	if f := (*program.Failure)(nil); errors.As(err, &f) {
		return nil, &execution.Receipt{
			ExecutionID: spec.ID, ExitCode: f.Exit, Cause: execution.CauseStartFailed, Error: f.Reason, StartedAt: x.Clock.Now(),
		}, nil
	}
	return nil, nil, err
}

// commandOf is what a specification asks for in a guest with that environment. given are its secrets'.
func commandOf(spec execution.Spec, guest, given map[string]string) program.Command {
	// Later maps win: the task's environment, then the execution's, and TERM only where neither sets it.
	env := []map[string]string{program.Visible(guest, spec.HideEnv), spec.Env, given}
	if spec.TTY {
		env = append([]map[string]string{{"TERM": "xterm"}}, env...)
	}
	return program.Command{Argv: spec.Argv, Env: env, Dir: spec.WorkDir, User: spec.User, Privileged: spec.Privileged}
}

// run starts the program with its pipes or terminal, and everything that follows it. Errors: *program.Failure.
func (x *command) run(prog spawn.Spec, clone bool) error {
	io, err := program.OpenStdio(x.spec, prog.User)
	if err != nil {
		return program.CannotRun(err)
	}
	defer io.CloseTheirs()
	// Without a control group, processes are found by this variable, which they hand on to their children.
	x.tree.Mark = process.MarkKey + "=" + x.spec.ID
	prog.TTY, prog.Rlimits = x.spec.TTY, x.rlimits()
	x.tree.Place(&prog, clone)
	if !x.tree.Grouped() {
		prog.Env = append(prog.Env, x.tree.Mark)
	}
	x.started = x.Clock.Now()
	c, err := x.Start(prog, io, !x.spec.KeepTree)
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.child, x.stdio, x.stdin, x.tree.Leader = c, io, io.Stdin, c.Pid
	x.watch()
	x.mu.Unlock()
	for i, f := range io.Out {
		if f == nil {
			continue
		}
		x.pumps.Go(func() { // ends at the end of the stream; wait sees to it that it has one
			put := func(p []byte) { x.put(i, p) }
			if m := newMask(x.masked); m != nil {
				program.Pump(f, func(p []byte) { m.write(p, put) })
				m.flush(put)
			} else {
				program.Pump(f, put)
			}
			if f != io.TTY {
				_ = f.Close()
			}
		})
	}
	go x.wait(io.Out) // ends with the program and its output
	return nil
}
