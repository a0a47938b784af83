package env

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// runFlags are the flags of "drover run", beside those of every execution.
type runFlags struct {
	execFlags
	// Words FILE or FILE:PATH-IN-RUNNER, copied in this order before the command starts.
	files []string
	// For the claim only; the command itself is bounded by -limit-wall.
	wait time.Duration
	// For a new environment of an image: wait if that is given, else longer, as its image has to be fetched.
	imageWait time.Duration
	// Stands for the environment of this image, which is made if there is none.
	image string
	// Leaves the runner claimed, without an idle timeout of ours.
	keep bool
}

// RunCommand is "drover run": claim, copy, execute, release in one. It exits with the command's own code, so errors
// of drover's own are told apart by their text on stderr.
func RunCommand(app *term.App) *cobra.Command {
	f := &runFlags{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		if f.image != "" {
			return run(ctx, app, f, "", args)
		}
		return run(ctx, app, f, args[0], args[1:])
	}
	c := term.Command(app, "run ENV [-f FILE]… COMMAND [ARG…]", "Run a command in a fresh runner of an environment", 2, -1, run)
	given := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if f.image != "" && len(args) > 0 {
			return nil
		}
		// Nomad's users run job files so. A single word is too few for us.
		if len(args) == 1 && (strings.HasSuffix(args[0], ".hcl") || strings.HasSuffix(args[0], ".nomad")) {
			return drover.Errorf(drover.Invalid, "%q is no environment with a command: a job file is run with 'drover job run %[1]s'", args[0])
		}
		return given(c, args)
	}
	term.Describe(c, `Claims a warm runner of the environment, copies files into it, runs the command there with your stdin, stdout and stderr
(and your terminal, if there is one), exits with its code, and ends the runner. Flags of this command stand before COMMAND;
what follows it is the command's own. With -image there is no need to make an environment before: it is made, and kept,
if none stands for that image yet.

`+term.EscapeHelp,
		`drover run scratch uname -a
drover run python -f main.py python3 main.py < input.txt
drover run scratch -f data/:/tmp/data -limit-wall 10s sh -c 'ls /tmp/data'
drover run scratch -t sh
drover run -image python:3.13 python3 -c 'print(1)'`)
	c.PreRun = func(c *cobra.Command, _ []string) {
		if f.imageWait = f.wait; !c.Flags().Changed("wait") {
			f.imageWait = imageWait
		}
	}
	// Flags behind the command's name are the command's own, without a "--" before them.
	c.Annotations = map[string]string{term.PassThrough: term.AfterFlags}
	fl := c.Flags()
	fl.StringArrayVarP(&f.files, "file", "f", nil, "copy a file or folder, FILE or FILE:PATH-IN-RUNNER; can be repeated")
	fl.StringVar(&f.image, "image", "",
		`run in the environment of this image ("host", an OCI reference, a path), and make it if there is none`)
	_ = fl.SetAnnotation("image", term.StandsForFirst, []string{""}) // the flag is there
	fl.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for a runner; with -image that is made first, 5m for that unless given")
	fl.BoolVar(&f.keep, "keep", false, "do not end the runner; print its id on stderr")
	f.bind(fl)
	return c
}

const (
	releaseWait    = 10 * time.Second // for the release of a runner after Ctrl-C
	AbandonedAfter = time.Minute      // idle timeout of a runner: we may be killed before we release it
)

// run claims a runner, copies the files in and executes the command. The runner is released at every end, unless
// -keep is given. Errors: *term.ExitError with the command's code; Invalid for the files; the API's.
func run(ctx context.Context, app *term.App, f *runFlags, environment string, argv []string) error {
	// Whatever ends us, the runner is to be ended first: a closed terminal, a reader that has had enough.
	ctx, stop := term.Interruptible(ctx, syscall.SIGHUP)
	defer stop()
	// Without this the Go runtime ends the process at the first write to a closed stdout, before the release.
	signal.Ignore(syscall.SIGPIPE)
	c, err := app.Native()
	if err != nil {
		return err
	}
	if f.image != "" {
		if environment, err = ofImage(ctx, app, c, f.image, f.imageWait); err != nil {
			return err
		}
	}
	claim := execution.ClaimRequest{Environment: environment, Wait: f.wait}
	if !f.keep {
		claim.IdleTimeout = AbandonedAfter
	}
	runner, err := claimed(ctx, app, c, claim)
	if err != nil {
		return err
	}
	if f.keep {
		fmt.Fprintln(app.Err, "runner", runner.ID)
	} else {
		defer func() {
			signal.Reset(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // who does not want to wait for this either
			// The context may have ended by Ctrl-C, and the release is to be sent all the same.
			ctx, cancel := clock.Wall{}.WithTimeout(context.WithoutCancel(ctx), releaseWait)
			defer cancel()
			if err := c.Release(ctx, runner.ID); err != nil && drover.CodeOf(err) != drover.Gone && drover.CodeOf(err) != drover.NotFound {
				fmt.Fprintf(app.Err, "Warning: runner %s was not ended: %v\n", runner.ID, err)
			}
		}()
	}
	for _, file := range f.files {
		from, to, _ := strings.Cut(file, ":")
		if err := upload(ctx, c, runner.ID, from, inFolder(to, from)); err != nil {
			return err
		}
	}
	return execute(ctx, app, c, runner.ID, &f.execFlags, argv)
}
