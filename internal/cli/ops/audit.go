package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cli/term"
)

// auditCommand is "drover operator audit".
func auditCommand(app *term.App) *cobra.Command {
	return term.Group("audit", "Read and check the record of requests", auditListCommand(app), verifyCommand(app))
}

// verifyCommand is "drover operator audit verify". It asks no agent: files may have been carried elsewhere.
func verifyCommand(app *term.App) *cobra.Command {
	var keyFile, head string
	o := &term.Output{}
	run := func(_ context.Context, app *term.App, args []string) error {
		want, err := checkOf(keyFile, head)
		if err != nil {
			return err
		}
		v, err := audit.Verify(args, want)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, v); done {
			return err
		}
		return printVerified(app, v, want)
	}
	c := term.Command(app, "verify FILE…", "Check that nobody changed the files of an audit", 1, 10_000, run)
	term.Describe(c, `Reads files of one sink, in any order, and checks that they are one chain without gap: over rotated files and
restarts of the agent. The first line that is broken is named, and the exit code is 1.

Without -key whoever changed a line may have computed all that follows anew. With the sink's first key, which the agent leaves in
data_dir/audit/NAME.key, seals show that: what was written before the last seal cannot have been forged later, even by who has the
machine. Without -head an end that was cut off is not seen: give the agent's NAME.head, or a line that you noted elsewhere.`,
		`drover operator audit verify -key audit.key -head /var/lib/drover/audit/audit.head /var/lib/drover/audit/audit*.log
drover operator audit verify -head 1207:9b2f…c1 audit.log`)
	o.Bind(c.Flags())
	c.Flags().StringVar(&keyFile, "key", "", "file with the sink's first key: check seals")
	c.Flags().StringVar(&head, "head", "", "file NAME.head of the agent, or NUMBER:DIGEST of a line that must be there")
	return c
}

func checkOf(keyFile, head string) (want audit.Check, err error) {
	if keyFile != "" {
		if want.Key, err = audit.ReadKey(keyFile); err != nil {
			return want, err
		}
	}
	if head == "" {
		return want, nil
	}
	h, err := audit.ReadHead(head)
	if errors.Is(err, os.ErrNotExist) {
		h, err = audit.ParseHead(head)
	}
	if err == nil && h.Seq == 0 {
		err = drover.Errorf(drover.Invalid, "-head: %s names no line: nothing was written yet", head)
	}
	want.Head = &h
	return want, err
}

// printVerified tells what is proven, and what is not.
func printVerified(app *term.App, v *audit.Verified, want audit.Check) error {
	begin, seals, end := "the beginning of the chain", fmt.Sprintf("%d, not checked: no -key", v.Seals), "not checked: no -head"
	if v.First.Seq > 1 {
		begin = fmt.Sprintf("line %d: earlier files were not given", v.First.Seq)
	}
	if want.Key != nil {
		seals = fmt.Sprintf("%d, none: nothing is attested", v.Seals)
		if v.Sealed > 0 {
			seals = fmt.Sprintf("%d, the last at %s: lines up to %d are attested", v.Seals, v.SealedAt.Format(time.RFC3339), v.Sealed)
		}
	}
	if want.Head != nil {
		end = fmt.Sprintf("line %d is there", want.Head.Seq)
	}
	return term.Facts(app.Out, "Whole", "yes", "Lines", fmt.Sprint(v.Lines), "From", begin, "Seals", seals, "End", end,
		"Left out by the agent", fmt.Sprint(v.Dropped), "Last line", fmt.Sprintf("%d:%s", v.Last.Seq, v.Last.Hash))
}
