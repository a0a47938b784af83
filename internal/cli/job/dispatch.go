package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
)

// dispatchCommand is "drover job dispatch". The payload is read before the job is looked up, so that a missing file
// is told first. Without a file there is no payload, and the job's parameterized block decides whether that is
// allowed.
func dispatchCommand(app *term.App) *cobra.Command {
	f := &follow.Options{}
	var meta []string
	var token, prefix string
	var priority int
	run := func(ctx context.Context, app *term.App, args []string) error {
		m, err := term.KeyValues("-meta", meta)
		if err != nil {
			return err
		}
		var payload []byte
		if len(args) == 2 {
			if payload, err = app.ReadInput(ctx, args[1]); err != nil {
				return err
			}
		}
		// JSON writes the bytes of the payload as base64, as Nomad's API wants them.
		body := map[string]any{"Payload": payload, "Meta": m, "IdPrefixTemplate": prefix, "Priority": priority}
		return change(ctx, app, args[0], *f, func(c *api.Client, j *drover.Job) (drover.Outcome, error) {
			return dispatch(ctx, app, c, j, body, token)
		})
	}
	c := term.Command(app, "dispatch JOB [FILE|-]", "Start a child of a parameterized job", 1, 2, run)
	term.Describe(c, "The file is the child's payload; - is stdin.", `drover job dispatch encode video.mp4
echo data | drover job dispatch -meta kind=raw import -`)
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata for the child, key=value; can be repeated")
	c.Flags().StringVar(&token, "idempotency-token", "", "start no second child with this token")
	c.Flags().StringVar(&prefix, "id-prefix-template", "", "beginning of the child's id")
	c.Flags().IntVar(&priority, "priority", 0, "the child's priority; default: the job's")
	f.Bind(c)
	return c
}

// dispatch starts the child and prints its id. With an idempotency token that was used before, the server answers
// with the child that exists and its first evaluation, which is then followed. Errors: the API's.
func dispatch(
	ctx context.Context, app *term.App, c *api.Client, j *drover.Job, body map[string]any, token string,
) (o drover.Outcome, err error) {
	q := api.InNamespace(j.Namespace)
	if token != "" {
		q.Set("idempotency_token", token)
	}
	if err := c.Put(ctx, api.JobPath(j.ID, "/dispatch"), q, body, &o); err != nil {
		return o, err
	}
	_, err = fmt.Fprintf(app.Out, "Dispatched job ID: %s\n", o.DispatchedJobID)
	return o, err
}
