package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/follow"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// poolPoll is how often a filling pool is looked at: a sandbox starts within hundredths of a second, a container within seconds.
const poolPoll = 100 * time.Millisecond

// filling is a pool that is waited for.
type filling struct {
	id        string
	namespace string // "" = default
	size      int
	wait      time.Duration
	failed    time.Time // when the failure came that is known already; zero = none is
}

// awaitPool waits until size runners are warm, at most for wait, and prints each change of the pool. It ends at once when a failure came
// that waiting does not mend. The pool goes on filling after an error. Errors: Canceled if the caller's context ended; Unavailable after
// wait, or with what does not go away; the API's.
func awaitPool(ctx context.Context, app *term.App, out io.Writer, c *client.Client, f filling) error {
	// The caller's own context tells an interruption from the end of the wait.
	asked := ctx
	ctx, cancel := clock.Wall{}.WithTimeout(ctx, f.wait)
	defer cancel()
	told := ""
	hope := hopes{app: app, out: out, failed: f.failed}
	for {
		p, err := c.Pool(ctx, f.id)
		// An error that only says that the wait is over is told below, with how the pool stands.
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			if now := poolLine(p); now != told {
				told = now
				fmt.Fprintln(out, "   ", now)
			}
			if p.Warm >= f.size {
				return nil
			}
			if why := hope.lost(ctx, &p, f.namespace, f.id); why != "" {
				return drover.Errorf(drover.Unavailable, "the pool of %q does not fill: %s; 'drover env status %[1]s' tells how it stands", f.id, why)
			}
		}
		switch {
		case clock.Sleep(ctx, clock.Wall{}, poolPoll):
		case asked.Err() != nil:
			return drover.Errorf(drover.Canceled, "interrupted; the pool of %q goes on filling", f.id)
		default:
			return drover.Errorf(drover.Unavailable,
				"the pool of %q did not fill within %v: %s; 'drover env status %[1]s' tells how it stands", f.id, f.wait, told)
		}
	}
}

// hopes is what a pool that is waited for may still become.
type hopes struct {
	app     *term.App
	out     io.Writer
	failed  time.Time // when the failure came that is known already
	missing time.Time // since when the driver of now is missing; zero = it is not
	asked   bool      // the agent was asked for it
	said    string    // who could bring it, as told last
}

// lost returns why waiting for the pool does not help any more, "" while it may.
func (h *hopes) lost(ctx context.Context, p *execution.PoolStatus, namespace, id string) string {
	if p.Final && p.Warm == 0 && !p.FailedAt.Equal(h.failed) {
		return term.OneLine(p.LastError) + " (waiting does not mend that)"
	}
	now := clock.Wall{}.Now()
	if p.MissingDriver == "" {
		h.missing, h.asked = time.Time{}, false
		return ""
	}
	if h.missing.IsZero() {
		h.missing = now
	}
	late := now.Sub(h.missing) >= follow.DriverGrace
	if h.asked && !late {
		return ""
	}
	h.asked = true
	a, err := h.app.Nomad()
	if err != nil {
		return ""
	}
	if execution.IsKey(id) {
		namespace, id = execution.SplitKey(id)
	}
	namespace = cmp.Or(namespace, a.Namespace, drover.DefaultNamespace)
	o := follow.DriverOutlook(ctx, a, namespace, execution.EnvironmentJobPrefix+id, p.MissingDriver)
	switch {
	case o.Hopeless && (o.Asked || late):
		return o.Why
	case late && o.Why != "" && o.Why != h.said:
		h.said = o.Why
		fmt.Fprintln(h.out, "   ", o.Why)
	}
	if late {
		h.missing = now // and look again after a while
	}
	return ""
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
