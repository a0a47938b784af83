package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// Warning is the exit code of a script that only warns. Any other one but 0 means that it failed.
const Warning = 1

// Bounds of what a script may use beside its task.
const (
	scriptPids   = 64
	scriptOutput = 1 << 20 // bytes of each stream; one that writes more is killed
)

// Script carries out a check of type script: its command runs in the task, within the task's limits, and is killed with all that it
// started when the context ends. Exit code 0 is well; the output is the beginning of what it wrote.
func Script(ctx context.Context, h driver.Handle, c *Check) (code int, output string, ok bool) {
	x, can := h.(driver.Execer)
	if !can {
		return 0, "nomad: the driver of task " + c.Task + " cannot run commands in it", false
	}
	session, err := x.StartExecution(ctx, execution.Spec{
		Argv:   append([]string{c.Command}, c.Args...),
		Limits: drover.Limits{Wall: c.Timeout, Pids: scriptPids, OutputBytes: scriptOutput},
	})
	if err != nil {
		return 0, "nomad: " + err.Error(), false
	}
	defer func() { _ = session.Close() }() // ends the command if it still runs
	receipt, output, err := follow(ctx, session)
	switch {
	case errors.Is(err, context.DeadlineExceeded), err == nil && receipt.Cause == execution.CauseTimeout:
		return 0, fmt.Sprintf("nomad: the script took longer than %v and was killed: %s", c.Timeout, output), false
	case err != nil:
		return 0, "nomad: " + err.Error(), false
	case receipt.Cause == execution.CauseStartFailed:
		return receipt.ExitCode, "nomad: " + receipt.Error, false
	case receipt.Cause != execution.CauseExited:
		return receipt.ExitCode, fmt.Sprintf("nomad: the script was ended (%s): %s", receipt.Cause, output), false
	}
	return receipt.ExitCode, output, receipt.ExitCode == 0
}

// follow reads all that a command writes and keeps the beginning.
func follow(ctx context.Context, session execution.Session) (receipt *execution.Receipt, output string, err error) {
	var kept []byte
	for {
		frame, err := session.Next(ctx)
		if err == nil && frame.Receipt == nil {
			kept = append(kept, frame.Data[:min(len(frame.Data), maxOutput-len(kept))]...)
			continue
		}
		output = strings.ToValidUTF8(string(kept), string(utf8.RuneError))
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame.Receipt, output, err
	}
}
