package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

const environment = "chaos"

// executed is what clients had of runners.
type executed struct {
	mu      sync.Mutex          // guards what follows
	claims  map[string][]string // who was answered with a runner, and when, by runner
	tried   int
	whole   int // executions whose output was whole
	excused int // lost with their node
	unbegun int // never said to have started
	// unrecorded were in runners that were claimed at a server when it was struck.
	unrecorded int
	attached   int // attachments after a connection broke
}

// deal is one client's use of one runner.
type deal struct {
	*world
	runner execution.Runner
	server string // where it was claimed
	name   string // what it prints
	id     string // of the execution; "" until it is known
	want   string
	at     int64 // how much of it came
	begun  bool  // it was said to have started
	// skipped says that some of it was told not to be kept.
	skipped bool
	from    time.Duration
}

// executes claims runners through a server, has each print lines for some seconds, follows that through whichever server
// answers, and releases the runner.
func (w *world) executes(server int, chance *rand.Rand) {
	for n := 0; w.pause(time.Duration(chance.IntN(500)) * time.Millisecond); n++ {
		ctx, cancel := context.WithTimeout(w.ctx, 15*time.Second)
		r, err := w.native(server).Claim(ctx, execution.ClaimRequest{
			Environment: environment, Wait: 5 * time.Second, IdleTimeout: time.Minute,
		})
		cancel()
		w.executed.mu.Lock()
		w.executed.tried++
		if err == nil {
			who := fmt.Sprintf("%s's client at %.2f s", w.servers[server].name, w.now().Seconds())
			w.executed.claims[r.ID] = append(w.executed.claims[r.ID], who)
		}
		w.executed.mu.Unlock()
		if err != nil {
			w.pause(time.Second)
			continue
		}
		d := &deal{world: w, runner: r, server: w.servers[server].name, name: fmt.Sprintf("x-%d-%d", server, n), from: w.now()}
		d.execute(server, 5+chance.IntN(40))
		for try := range 3 {
			ctx, cancel := context.WithTimeout(w.ctx, patience)
			err := w.native((server+try)%3).Release(ctx, r.ID)
			cancel()
			if err == nil {
				break
			}
		}
	}
}

// execute prints lines in the runner, and looks at what comes until it has ended.
func (d *deal) execute(server, lines int) {
	for i := range lines {
		d.want += fmt.Sprintf("%s line %d\n", d.name, i)
	}
	ctx, cancel := context.WithTimeout(d.clients, 2*time.Minute)
	defer cancel()
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo %s line $i; i=$((i+1)); sleep 0.1; done", lines, d.name)
	s, err := d.native(server).Execute(ctx, d.runner.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Detach: 2 * time.Minute,
	}})
	missed, why := time.Duration(0), "" // since when a server says that there is no such execution
	known := false                      // its id, by then: one that nobody was told of may also begin later
	for ctx.Err() == nil {
		var receipt *execution.Receipt
		if err == nil {
			if missed > 0 && known {
				d.breach(promiseExecutions, "%s on %s was not there for %v: %s", d.name, d.runner.ID, d.now()-missed, why)
			}
			missed = 0
			receipt, err = d.follow(ctx, s)
			_ = s.Close() // it broke, or has ended
			d.id = cmp.Or(s.ID(), d.id)
		}
		if receipt != nil {
			d.ended(receipt)
			return
		}
		code := drover.CodeOf(err)
		gone := code == drover.NotFound || code == drover.Gone || code == drover.Invalid || code == drover.Conflict
		if gone && missed == 0 {
			missed, why, known = d.now(), err.Error(), d.id != ""
		}
		if gone && d.now() > missed+settle {
			break
		}
		d.count(&d.executed.attached)
		if !d.pause(300 * time.Millisecond) {
			return
		}
		server = (server + 1) % 3
		s, err = d.again(ctx, server)
	}
	if !d.running() {
		return
	}
	d.lost("%v", err)
}

// again attaches at a server. It asks first which execution it was if nobody told its id; there may be none.
func (d *deal) again(ctx context.Context, server int) (*client.Session, error) {
	if d.id == "" {
		list, err := d.native(server).Executions(ctx, d.runner.ID)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, drover.Errorf(drover.NotFound, "nothing runs in %s", d.runner.ID)
		}
		d.id, d.begun = list[0].ID, true
	}
	return d.native(server).Attach(ctx, d.id, execution.Offsets{Stdout: d.at})
}

func (d *deal) count(n *int) {
	d.executed.mu.Lock()
	defer d.executed.mu.Unlock()
	*n++
}

// follow takes what comes until the receipt. Errors: the session's; the connection is then of no use.
func (d *deal) follow(ctx context.Context, s execution.Session) (*execution.Receipt, error) {
	for {
		step, cancel := context.WithTimeout(ctx, 10*time.Second)
		f, err := s.Next(step)
		cancel()
		switch {
		case err != nil:
			return nil, err
		case f.Receipt != nil:
			return f.Receipt, nil
		case f.Started:
			d.begun = true
		case f.Skipped: // that is told
			d.skipped = true
			d.at = f.Offset
		case f.Stream != execution.Stdout: // the shell's own
			d.say("%s says %q on its other stream", d.name, f.Data)
			continue
		}
		if len(f.Data) == 0 {
			continue
		}
		d.begun = true
		if f.Offset != d.at {
			d.breach(promiseBytes, "%s on %s: the next bytes are at %d, want those at %d", d.name, d.runner.ID, f.Offset, d.at)
		}
		d.at = f.Offset + int64(len(f.Data))
		if d.at > int64(len(d.want)) || d.want[f.Offset:d.at] != string(f.Data) {
			d.breach(promiseBytes, "%s on %s printed %q at %d, want %q", d.name, d.runner.ID, f.Data, f.Offset, d.want)
		}
	}
}

// ended judges the receipt.
func (d *deal) ended(r *execution.Receipt) {
	switch {
	case r.Cause == execution.CauseExited && r.ExitCode == 0 && !r.Truncated:
		if d.skipped {
			d.lost("its output is not kept")
			return
		}
		if d.at != int64(len(d.want)) {
			d.breach(promiseBytes, "%s on %s is said to be whole, %d of %d bytes came", d.name, d.runner.ID, d.at, len(d.want))
			return
		}
		d.count(&d.executed.whole)
	default:
		d.lost("its receipt is %+v", *r)
	}
}

// lost tells of an execution that did not come to its end, unless its node was struck.
func (d *deal) lost(format string, args ...any) {
	node := d.nodeName(d.runner.NodeID)
	switch {
	case d.faulted(node, d.from, d.now()):
		d.count(&d.executed.excused)
	case !d.begun:
		d.count(&d.executed.unbegun)
	case d.struck(d.server, d.from): // the claim could not be recorded before the server was given up: its runner is destroyed
		d.count(&d.executed.unrecorded)
	default:
		d.breach(promiseExecutions, "%s on %s, whose node %s lives, after %d of %d bytes: %s", d.name, d.runner.ID, node, d.at,
			len(d.want), fmt.Sprintf(format, args...))
	}
}

// checkClaims sees that each runner was handed to one client.
func (w *world) checkClaims() {
	e := &w.executed
	for runner, who := range e.claims {
		if len(who) > 1 {
			w.breach(promiseClaims, "runner %s was handed out %d times: %v", runner, len(who), who)
		}
	}
	w.figure("%d claims of %d tried; %d executions whole, %d lost with their node, %d with their claim's server, "+
		"%d never begun; attached again %d times",
		len(e.claims), e.tried, e.whole, e.excused, e.unrecorded, e.unbegun, e.attached)
}
