package env

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// poolPoll is how often a filling pool is looked at: a sandbox starts within hundredths of a second, a container within seconds.
const poolPoll = 100 * time.Millisecond

// awaitPool waits until size runners are warm, at most for wait, and prints each change of the pool. The pool goes on
// filling after an error. Errors: Canceled if the caller's context ended; Unavailable after wait; the API's.
func awaitPool(ctx context.Context, out io.Writer, c *client.Client, id string, size int, wait time.Duration) error {
	// The caller's own context tells an interruption from the end of the wait.
	asked := ctx
	ctx, cancel := clock.Wall{}.WithTimeout(ctx, wait)
	defer cancel()
	told := ""
	for {
		p, err := c.Pool(ctx, id)
		// An error that only says that the wait is over is told below, with how the pool stands.
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			if now := poolLine(p); now != told {
				told = now
				fmt.Fprintln(out, "   ", now)
			}
			if p.Warm >= size {
				return nil
			}
		}
		switch {
		case clock.Sleep(ctx, clock.Wall{}, poolPoll):
		case asked.Err() != nil:
			return drover.Errorf(drover.Canceled, "interrupted; the pool of %q goes on filling", id)
		default:
			return drover.Errorf(drover.Unavailable,
				"the pool of %q did not fill within %v: %s; 'drover env status %[1]s' tells how it stands", id, wait, told)
		}
	}
}

// poolLine says in one line how a pool stands, such as "1 of 4 warm, 3 starting". The last error is shown only while
// runners are missing: of a full pool it is history.
func poolLine(p execution.PoolStatus) string {
	parts := []string{fmt.Sprintf("%d of %d warm", p.Warm, p.Size)}
	for _, s := range []struct {
		n    int
		what string
	}{{p.Starting, "starting"}, {p.Queued, "queued"}, {p.Claimed, "claimed"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	if p.Waiting > 0 {
		parts = append(parts, term.Plural(p.Waiting, "claim")+" waiting")
	}
	text := strings.Join(parts, ", ")
	if p.LastError != "" && p.Warm < p.Size {
		text += "; last error: " + term.OneLine(p.LastError)
	}
	return text
}
