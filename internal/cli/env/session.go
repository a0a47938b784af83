package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// execFlags are the flags of commands that run a program in a runner.
type execFlags struct {
	// With neither tty nor noTTY, the command gets a terminal if there is one here.
	stdin, tty, noTTY, receipt bool
	user, workDir              string
	privileged                 bool
	escape                     term.Escape
	env                        []string
	secrets, secretFiles       []string
	identities, identityFiles  []string
	mask                       bool
	// Bounds of this execution only; 0 leaves what the environment says.
	limits drover.Limits
}

// bind adds the flags to a command, with docker's letters where docker has such a flag.
func (f *execFlags) bind(fl *pflag.FlagSet) {
	fl.BoolVarP(&f.stdin, "stdin", "i", true, "hand on stdin")
	fl.BoolVarP(&f.tty, "tty", "t", false, "give the command a terminal; default: if there is one here")
	fl.BoolVarP(&f.noTTY, "no-tty", "T", false, "give it none")
	f.escape.Bind(fl)
	fl.StringVar(&f.user, "user", "", "run as this user; default: the environment's")
	fl.BoolVar(&f.privileged, "privileged", false, "run as the runner's root")
	fl.StringVar(&f.workDir, "work-dir", "", "working directory")
	fl.StringArrayVar(&f.env, "env", nil, "environment variable, KEY=value; can be repeated")
	fl.StringArrayVar(&f.secrets, "secret", nil, "environment variable from an item of a variable, NAME=PATH[@NAMESPACE]#KEY; can be repeated")
	fl.StringArrayVar(&f.secretFiles, "secret-file", nil, "file in $DROVER_SECRETS_DIR from one, NAME=PATH#KEY; can be repeated")
	fl.StringArrayVar(&f.identities, "identity", nil, "environment variable with a token that says what the command is, "+
		"NAME=AUDIENCE; can be repeated")
	fl.StringArrayVar(&f.identityFiles, "identity-file", nil, "file in $DROVER_SECRETS_DIR with one, NAME=AUDIENCE; can be repeated")
	fl.BoolVar(&f.mask, "mask", false, "have *** printed in place of the secrets' values")
	fl.DurationVar(&f.limits.Wall, "limit-wall", 0, "end it after this time")
	fl.DurationVar(&f.limits.CPU, "limit-cpu", 0, "… after this much CPU time")
	fl.IntVar(&f.limits.MemoryMB, "limit-memory", 0, "… when it takes more MB")
	fl.IntVar(&f.limits.Pids, "limit-pids", 0, "processes at most")
	fl.Int64Var(&f.limits.OutputBytes, "limit-output", 0, "bytes of stdout and of stderr at most")
	fl.BoolVar(&f.receipt, "receipt", false, "print what it used, on stderr, after its end")
}

// request makes the request of an execution; t is the terminal here, or nil. With -tty but without a terminal here,
// the command gets one of the service's default size. Errors: Invalid for a wrong -env.
func (f *execFlags) request(argv []string, t *term.Console) (r execution.Request, err error) {
	r.Argv, r.User, r.Privileged, r.WorkDir, r.Stdin, r.Limits = argv, f.user, f.privileged, f.workDir, f.stdin, f.limits
	if r.Env, err = term.KeyValues("-env", f.env); err != nil {
		return r, err
	}
	for _, text := range f.secrets {
		s, err := f.secret("-secret", text)
		if err != nil {
			return r, err
		}
		s.Env, s.File = s.File, ""
		r.Secrets = append(r.Secrets, s)
	}
	for _, text := range f.secretFiles {
		s, err := f.secret("-secret-file", text)
		if err != nil {
			return r, err
		}
		r.Secrets = append(r.Secrets, s)
	}
	if r.Secrets, err = f.withIdentities(r.Secrets); err != nil {
		return r, err
	}
	if r.TTY = f.tty || t != nil && !f.noTTY; r.TTY && t != nil {
		r.Size = t.Size()
		// Programs there must write the codes that our terminal understands.
		if name := os.Getenv("TERM"); name != "" && r.Env["TERM"] == "" {
			r.Env["TERM"] = name
		}
	}
	return r, nil
}

// withIdentities adds the tokens that the command is to have of its own. Errors: Invalid.
func (f *execFlags) withIdentities(list []execution.Secret) ([]execution.Secret, error) {
	for i, text := range slices.Concat(f.identities, f.identityFiles) {
		name, audience, ok := strings.Cut(text, "=")
		s := execution.Secret{Env: name, Identity: audience}
		if !ok || name == "" || audience == "" {
			return nil, drover.Errorf(drover.Invalid, "-identity %q: want NAME=AUDIENCE, as AWS_TOKEN=sts.amazonaws.com", text)
		}
		if i >= len(f.identities) {
			s.Env, s.File = "", name
		}
		list = append(list, s)
	}
	return list, nil
}

// secret parses a flag's NAME=PATH[@NAMESPACE]#KEY; the name is File's. Errors: Invalid.
func (f *execFlags) secret(flag, text string) (execution.Secret, error) {
	name, from, named := strings.Cut(text, "=")
	path, key, keyed := strings.Cut(from, "#")
	if !named || !keyed || name == "" || path == "" || key == "" {
		return execution.Secret{}, drover.Errorf(drover.Invalid, "%s %q: want NAME=PATH#KEY, as PASSWORD=nomad/jobs/web#password", flag, text)
	}
	path, namespace, _ := strings.Cut(path, "@")
	return execution.Secret{Namespace: namespace, Path: path, Key: key, File: name, Mask: f.mask}, nil
}

// attachWithin is how long a command of ours runs on without us when a connection broke.
const attachWithin = 15 * time.Second

// execute runs a command in a runner with our streams, and ends with its code. When the connection breaks, as when the agent restarts or
// the server dies that had the execution, it attaches again: at the same agent, which finds the execution wherever it is. If we leave, the
// command ends. The terminal is raw meanwhile and restored at every end. Errors: *term.ExitError; Invalid; the API's.
func execute(ctx context.Context, app *term.App, c *client.Client, runner string, f *execFlags, argv []string) error {
	t := app.Console()
	r, err := f.request(argv, t)
	if err != nil {
		return err
	}
	r.Detach = attachWithin
	s, err := client.ExecuteLasting(ctx, []*client.Client{c}, runner, r)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is left to be said
	ctx, leave := term.Leavable(ctx)
	defer leave()
	send := func(p []byte) error { return s.Write(ctx, p) }
	if r.TTY && t != nil {
		if r.Stdin {
			if err := t.Raw(); err != nil {
				return err
			}
			defer t.Restore()
			send = (&term.Keys{Escape: f.escape, Send: send, Leave: leave}).Type
		}
		go t.OnResize(ctx, func(size execution.WindowSize) { _ = s.Resize(ctx, size) }) // ends with ctx; Next tells of a broken connection
	}
	input := func() {}
	if r.Stdin {
		input = func() { go term.PumpInput(app.In, send, func() error { return s.CloseStdin(ctx) }) } // ends with stdin, or the process
	}
	receipt, err := relay(ctx, app, s, input)
	t.Restore()
	if err != nil {
		endNow(ctx, c, s.ID())
	}
	switch {
	// The user left or a signal came: the exit code says so, and the error of the broken stream would only confuse.
	case err != nil && ctx.Err() != nil:
		return &term.ExitError{Code: term.InterruptCode(ctx)}
	case errors.Is(err, syscall.EPIPE):
		return &term.ExitError{Code: term.ExitPipe}
	case err != nil:
		return err
	}
	return exitOf(app, receipt, f.receipt)
}

// endNow ends the execution of a session that we leave, which would run on for a while.
func endNow(ctx context.Context, c *client.Client, id string) {
	if id == "" { // it has not started
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer done()
	_ = c.Kill(ctx, id) // it may have ended, and ends by itself if nobody answers
}

// relay copies the session's output to ours until the receipt, which it returns. It calls started once the program
// can be sent to. Errors: the session's; Internal without a receipt; those of writing, as EPIPE.
func relay(ctx context.Context, app *term.App, s execution.Session, started func()) (*execution.Receipt, error) {
	for {
		f, err := s.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil, drover.Errorf(drover.Internal, "the execution ended without a receipt")
		case err != nil:
			return nil, err
		case f.Receipt != nil:
			return f.Receipt, nil
		case f.Started:
			started()
		case f.Skipped: // who reads ours must not take it for whole
			return nil, drover.Errorf(drover.Unavailable, "the connection broke, and what the command wrote meanwhile was too much to be kept")
		case f.Stream == execution.Stderr:
			_, err = app.Err.Write(f.Data)
		default:
			_, err = app.Out.Write(f.Data)
		}
		if err != nil {
			return nil, fmt.Errorf("printing: %w", err)
		}
	}
}

// exitOf turns a receipt into our own end: nil for a command that exited with 0, else its code, and the reason if it
// did not exit by itself. With print, what it used goes to stderr first.
func exitOf(app *term.App, r *execution.Receipt, print bool) error {
	if print {
		fmt.Fprintf(app.Err, "exit %d (%s), %v, %v of CPU, %s at most, %d bytes of stdout, %d of stderr\n", r.ExitCode, r.Cause,
			term.Round(r.Wall), term.Round(r.UserCPU+r.SystemCPU), term.Bytes(float64(r.PeakMemory)), r.StdoutBytes, r.StderrBytes)
	}
	if r.Truncated {
		fmt.Fprintln(app.Err, "Warning: some of the output was lost.")
	}
	var why error
	switch r.Cause {
	case execution.CauseExited:
		if r.ExitCode == 0 {
			return nil
		}
	case execution.CauseStartFailed:
		why = fmt.Errorf("the command was not started: %s", r.Error)
	case execution.CauseSignalled:
		why = fmt.Errorf("the command was ended by signal %d", r.Signal)
	default:
		why = fmt.Errorf("the command was ended: %s", causeText(r.Cause))
		if r.Error != "" && (r.Cause == execution.CauseRunnerGone || r.Cause == execution.CauseKilled) { // which the cause doesn't tell
			why = fmt.Errorf("%w: %s", why, term.OneLine(r.Error))
		}
	}
	// A command that was ended before it had a code must not look like a success.
	return &term.ExitError{Code: max(r.ExitCode, 1), Err: why}
}

// causeText says for people why an execution was ended from outside; causes that are not known here stand for
// themselves.
func causeText(c execution.Cause) string {
	switch c {
	case execution.CauseTimeout:
		return "it took longer than -limit-wall"
	case execution.CauseOOM:
		return "it needed more memory than it may have"
	case execution.CauseOutputLimit:
		return "it wrote more than -limit-output"
	case execution.CauseCPULimit:
		return "it needed more CPU time than -limit-cpu"
	case execution.CauseRunnerGone:
		return "its runner ended"
	case execution.CauseKilled:
		return "killed by request"
	default:
		return string(c)
	}
}

// upload copies a file or folder into a runner; to is the target's full path. A file keeps its owner's right to
// execute, and nothing else of its mode. Errors: Invalid for a source that cannot be read; Canceled; the API's.
func upload(ctx context.Context, c *client.Client, runner, from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return drover.Errorf(drover.Invalid, "copying %s: %w", from, err)
	}
	if info.IsDir() {
		if err := c.ChangeFiles(ctx, runner, execution.FileChange{Path: to, Mkdir: true}); err != nil {
			return fmt.Errorf("making %s: %w", to, err)
		}
		return uploadFolder(ctx, c, runner, from, to)
	}
	file, err := term.UnlessInterrupted(ctx, func() (*os.File, error) { return os.Open(from) }) // a pipe waits for its writer
	if drover.CodeOf(err) == drover.Canceled {
		return err
	}
	if err != nil {
		return drover.Errorf(drover.Invalid, "copying %s: %w", from, err)
	}
	defer file.Close()
	change := execution.FileChange{Path: to, Write: true, Mode: 0o644}
	if info.Mode()&0o100 != 0 {
		change.Mode = 0o755
	}
	if err := c.WriteFile(ctx, runner, change, file); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// inFolder completes a target that is a folder (empty, or with a slash at its end) with the source's name. Sources
// without a name (".", "..", "/") are copied as what is in them.
func inFolder(target, source string) string {
	if target != "" && target[len(target)-1] != '/' {
		return target
	}
	switch name := path.Base(path.Clean(source)); name {
	case ".", "..", "/":
		return target + "."
	default:
		return target + name
	}
}

// claimed claims a runner. A claim that takes longer than a second is explained on stderr: how the pool stands, and
// each change of it. It ends when the pool fails in a way that waiting does not mend. Errors: the API's, Exhausted if no runner came within
// r.Wait; Unavailable with what does not go away.
func claimed(ctx context.Context, app *term.App, c *client.Client, r execution.ClaimRequest) (execution.Runner, error) {
	waiting, giveUp := context.WithCancelCause(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { // ends with waiting
		if why := tellPool(waiting, app, c, r.Environment); why != "" {
			giveUp(drover.Errorf(drover.Unavailable, "environment %q: %s; runners are tried again up to once a minute, "+
				"'drover env status %[1]s' tells how it stands", r.Environment, why))
		}
	})
	defer telling.Wait() // so that nothing of it comes among the program's output
	defer giveUp(nil)
	runner, err := c.Claim(waiting, r)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return runner, context.Cause(waiting)
	}
	return runner, err
}

// tellPool prints each second how a pool stands, if that is new, until ctx ends or waiting does not help any more: then it returns why.
// Errors of the API are not told: the claim meets them itself.
func tellPool(ctx context.Context, app *term.App, c *client.Client, environment string) string {
	hope := hopes{app: app, out: app.Err}
	for told := ""; clock.Sleep(ctx, clock.Wall{}, time.Second); {
		p, err := c.Pool(ctx, environment)
		if err != nil {
			continue
		}
		if now := poolLine(p); now != told {
			told = now
			fmt.Fprintf(app.Err, "waiting for a runner of %q: %s\n", environment, now)
		}
		if why := hope.lost(ctx, &p, "", environment); why != "" && p.Starting == 0 {
			return why
		}
	}
	return ""
}
