package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) jobDispatchCommand() *cobra.Command {
	f := &following{}
	var meta []string
	var token, prefix string
	var priority int
	c := leaf("dispatch JOB [FILE|-]", "Start a child of a parameterized job", 1, 2, func(ctx context.Context, args []string) error {
		m, err := keyValues("-meta", meta)
		if err != nil {
			return err
		}
		var payload []byte
		if len(args) == 2 {
			if payload, err = a.readInput(ctx, args[1]); err != nil {
				return err
			}
		}
		body := map[string]any{"Payload": payload, "Meta": m, "IdPrefixTemplate": prefix, "Priority": priority}
		return a.change(ctx, args[0], *f, func(c *api, j *drover.Job) (registered, error) {
			return a.dispatch(ctx, c, j, body, token)
		})
	})
	with(c, "The file is the child's payload; - is stdin.", "drover job dispatch encode video.mp4\necho data | drover job dispatch -meta kind=raw import -")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata for the child, key=value; can be repeated")
	c.Flags().StringVar(&token, "idempotency-token", "", "start no second child with this token")
	c.Flags().StringVar(&prefix, "id-prefix-template", "", "beginning of the child's id")
	c.Flags().IntVar(&priority, "priority", 0, "the child's priority; default: the job's")
	f.bind(c)
	return c
}

func (a *App) dispatch(ctx context.Context, c *api, j *drover.Job, body map[string]any, token string) (registered, error) {
	q := inNamespace(j.Namespace)
	if token != "" {
		q.Set("idempotency_token", token)
	}
	var answer struct{ DispatchedJobID, EvalID string }
	if err := c.put(ctx, jobPath(j.ID, "/dispatch"), q, body, &answer); err != nil {
		return registered{}, err
	}
	fmt.Fprintf(a.Out, "Dispatched job ID: %s\n", answer.DispatchedJobID)
	return registered{EvalID: answer.EvalID}, nil
}

// keyValues reads key=value words. Errors: Invalid.
func keyValues(flag string, words []string) (map[string]string, error) {
	m := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, drover.Errorf(drover.Invalid, "%s %q: want key=value", flag, w)
		}
		m[k] = v
	}
	return m, nil
}

// query makes a query of pairs, without the empty ones.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
