package env

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/cli/term"
)

// ExecutionCommand is "drover execution".
func ExecutionCommand(app *term.App) *cobra.Command {
	return term.Group("execution", "List and replay executions, get and verify signed receipts",
		executionListCommand(app), receiptCommand(app), replayCommand(app), verifyCommand(app))
}

// receiptCommand is "drover execution receipt".
func receiptCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *client.Client, args []string) error {
		r, err := c.SignedReceipt(ctx, args[0])
		if err == nil {
			_, err = fmt.Fprintln(app.Out, r.Token)
		}
		return err
	}
	c := term.NativeCommand(app, "receipt EXECUTION", "Print the signed receipt of an execution that ended", 1, 1, run)
	term.Describe(c, `Prints how an execution ended as a JSON web signature, which anybody can verify with the cluster's published keys.
Receipts can be had for 15 minutes after the end.`, `drover execution receipt 4c1f… > receipt.jws`)
	return c
}

// verifyCommand is "drover execution verify". With keys of a file it asks no agent.
func verifyCommand(app *term.App) *cobra.Command {
	keyFile := ""
	o := &term.Output{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		text, err := app.ReadInput(ctx, args[0])
		if err != nil {
			return err
		}
		keys, err := publishedKeys(ctx, app, keyFile)
		if err != nil {
			return err
		}
		st, key, err := claims.VerifyReceipt(strings.TrimSpace(string(text)), keys)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, st); done {
			return err
		}
		return showStatement(app, st, key)
	}
	c := term.Command(app, "verify FILE", "Check who signed a receipt, and show what it says", 1, 1, run)
	term.Describe(c, `Checks that a key of the cluster signed the receipt in FILE (- is standard input), and that nobody changed it since.
The exit code is 1 if not. The keys are those that the agent publishes, or those of -keys; then no agent is asked. Keep the keys with your
receipts: a cluster removes keys that it does not need any more, and then verifies nothing with them.`,
		`drover execution receipt 4c1f… | drover execution verify -
curl -s https://drover.example.com/.well-known/jwks.json > keys.json
drover execution verify -keys keys.json receipt.jws`)
	o.Bind(c.Flags())
	c.Flags().StringVar(&keyFile, "keys", "", "file with the published keys (a JSON web key set); default: ask the agent")
	return c
}

// publishedKeys are those of the file, or of the agent.
func publishedKeys(ctx context.Context, app *term.App, file string) ([]jose.JSONWebKey, error) {
	var set jose.JSONWebKeySet
	if file == "" {
		c, err := app.Nomad()
		if err != nil {
			return nil, err
		}
		_, err = c.Get(ctx, "/.well-known/jwks.json", nil, &set)
		return set.Keys, err
	}
	text, err := app.ReadInput(ctx, file)
	if err != nil {
		return nil, err
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&set); err != nil {
		return nil, drover.Errorf(drover.Invalid, "-keys: %s is no JSON web key set: %w", file, err)
	}
	if len(set.Keys) == 0 {
		return nil, drover.Errorf(drover.Invalid, "-keys: %s has no key: save /.well-known/jwks.json there", file)
	}
	return set.Keys, nil
}

// showStatement shows a statement to people.
func showStatement(app *term.App, st *execution.Statement, key string) error {
	r := &st.Receipt
	return term.Facts(app.Out, "Verified", "yes", "Key", key, "Issuer", st.Issuer,
		"Signed", time.Unix(st.IssuedAt, 0).UTC().Format(time.RFC3339),
		"Execution", st.Execution, "Runner", st.Runner, "Environment", st.Environment, "Namespace", st.Namespace,
		"Command", strings.Join(st.Argv, " "),
		"Exit Code", strconv.Itoa(r.ExitCode), "Cause", string(r.Cause), "Error", r.Error, "Started", started(r), "Wall", r.Wall.String(),
		"CPU", (r.UserCPU + r.SystemCPU).String(), "Peak Memory", term.Bytes(float64(r.PeakMemory)),
		"Output", fmt.Sprintf("%d bytes of stdout, %d of stderr", r.StdoutBytes, r.StderrBytes), "Truncated", truncated(r))
}

func started(r *execution.Receipt) string {
	if r.StartedAt.IsZero() {
		return ""
	}
	return r.StartedAt.UTC().Format(time.RFC3339)
}

func truncated(r *execution.Receipt) string {
	if r.Truncated {
		return "yes: some of the output was not delivered"
	}
	return ""
}
