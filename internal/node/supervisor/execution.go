package supervisor

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// StartExecution starts a command. A command that cannot be started is a session with a receipt (start_failed).
// Errors: Invalid (the spec), Conflict (the id is in use), Gone (with driver.ErrGone).
func (c *Client) StartExecution(ctx context.Context, spec execution.Spec) (execution.Session, error) {
	if spec.ID == "" {
		spec.ID = id.Random{}.New()
	}
	c.sweep(ctx)
	files, clone, err := c.openGroup(spec)
	if err != nil {
		return nil, err
	}
	k, err := c.open(wire.OpExec, wire.Exec{Spec: spec, Clone: clone}.Encode(), files...)
	if err != nil {
		c.closeGroup(ctx, spec.ID)
		return nil, err
	}
	s, err := c.newSession(ctx, k, spec.ID, execution.Offsets{})
	if err != nil {
		if drover.CodeOf(err) != drover.Conflict { // else the group is that of the other one
			c.closeGroup(ctx, spec.ID)
		}
		return nil, err
	}
	s.keep = spec.KeepTree
	return s, nil
}

// AttachExecution opens another session on an execution, from the offsets on. Errors: NotFound, Gone.
func (c *Client) AttachExecution(ctx context.Context, id string, from execution.Offsets) (execution.Session, error) {
	keep := false
	if c.findGroup(id) {
		list, err := c.Executions(ctx)
		if err != nil {
			return nil, err
		}
		keep = slices.ContainsFunc(list, func(x execution.Execution) bool { return x.ID == id && x.Spec.KeepTree })
	}
	var e wire.Encoder
	e.Str(id)
	e.Int(from.Stdout)
	e.Int(from.Stderr)
	k, err := c.open(wire.OpAttach, e.B)
	if err != nil {
		return nil, err
	}
	s, err := c.newSession(ctx, k, id, from)
	if err != nil {
		return nil, err
	}
	s.keep = keep
	return s, nil
}

// Executions lists what runs, and what ended and was not yet forgotten.
func (c *Client) Executions(ctx context.Context) ([]execution.Execution, error) {
	p, err := c.ask(ctx, wire.OpList, nil)
	if err != nil {
		return nil, err
	}
	d := wire.Decoder{B: p}
	list := make([]execution.Execution, 0, d.Len())
	for range cap(list) {
		list = append(list, d.Execution())
	}
	return list, d.Err
}

// The bounds of waiting for a group's last processes.
const groupPatience = 2 * time.Second

// openGroup makes an execution's group.
func (c *Client) openGroup(spec execution.Spec) (files []*os.File, clone bool, err error) {
	if c.opts.Groups == nil {
		return nil, false, nil
	}
	c.mu.Lock()
	_, used := c.groups[spec.ID]
	c.mu.Unlock()
	if used {
		return nil, false, drover.Errorf(drover.Conflict, "execution id %q is in use", spec.ID)
	}
	g, err := c.opts.Groups.Execution(spec.ID, spec.Limits)
	if err != nil || g == nil {
		return nil, false, err
	}
	c.mu.Lock()
	c.groups[spec.ID] = g
	c.mu.Unlock()
	files, clone = groupFiles(g)
	return files, clone, nil
}

// groupFiles returns what is sent: the folder to clone into first, if there is one.
func groupFiles(g Group) (files []*os.File, clone bool) {
	if g == nil {
		return nil, false
	}
	f := g.Files()
	if f.Dir != nil && len(f.Procs) > 0 {
		return append([]*os.File{f.Dir}, f.Procs...), true
	}
	return f.Procs, false
}

// findGroup looks for the group of an execution that an earlier agent started. It reports whether there is one.
func (c *Client) findGroup(id string) bool {
	if c.opts.Groups == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.stale[id]; g != nil {
		delete(c.stale, id)
		c.groups[id] = g
	}
	if c.groups[id] == nil {
		if g := c.opts.Groups.Find(id); g != nil {
			c.groups[id] = g
		}
	}
	return c.groups[id] != nil
}

// closeGroup removes the group of an execution that was not started.
func (c *Client) closeGroup(ctx context.Context, id string) {
	if g := c.takeGroup(id); g != nil {
		c.removeGroup(ctx, id, g)
	}
}

// takeGroup takes a group out of the client's hands; nil if it has none of this execution.
func (c *Client) takeGroup(id string) Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[id]
	delete(c.groups, id)
	return g
}

// completeGroup completes the receipt with what the group knows.
func (c *Client) completeGroup(id string, r *execution.Receipt) {
	c.mu.Lock()
	g := c.groups[id]
	c.mu.Unlock()
	if g == nil {
		return
	}
	if stats, err := g.Stats(); err == nil {
		// The group also counts processes that nobody waited for; the supervisor may have seen what it no longer shows.
		r.UserCPU, r.SystemCPU = max(r.UserCPU, stats.UserCPU), max(r.SystemCPU, stats.SystemCPU)
		if stats.PeakMemory > 0 {
			r.PeakMemory = stats.PeakMemory
		}
	}
	// The kernel's kill for memory looks like any SIGKILL from inside the guest.
	if r.Cause == execution.CauseSignalled && r.Signal == int(syscall.SIGKILL) && g.OOMKills() > 0 {
		r.Cause = execution.CauseOOM
	}
}

// leaveGroup removes the group of an execution that has ended, unless something may live on in it: it goes with the
// task's.
func (c *Client) leaveGroup(ctx context.Context, id string, keep bool) {
	if g := c.takeGroup(id); g != nil && !release(g, keep) {
		c.removeGroup(ctx, id, g)
	}
}

// release lets go of a group in which something may live on; false if it is to be removed.
func release(g Group, keep bool) bool {
	closer, ok := g.(interface{ Close() })
	if keep && ok {
		closer.Close()
	}
	return keep && ok
}

// removeGroup removes a group whatever became of the caller's context. A failure is only told: the group goes with the task's.
func (c *Client) removeGroup(ctx context.Context, id string, g Group) {
	ctx, cancel := c.opts.Clock.WithTimeout(context.WithoutCancel(ctx), groupPatience)
	defer cancel()
	if err := g.Remove(ctx); err != nil {
		c.opts.Log.Warn("removing the control group of an execution", "execution", id, "error", err)
	}
}

// abandonGroup notes that nobody follows an execution any more; sweep removes its group after its end.
func (c *Client) abandonGroup(id string, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.groups[id]; g != nil {
		delete(c.groups, id)
		if !release(g, keep) {
			c.stale[id] = g
		}
	}
}

// sweep removes the groups of executions that ended unobserved.
func (c *Client) sweep(ctx context.Context) {
	c.mu.Lock()
	n := len(c.stale)
	c.mu.Unlock()
	if n == 0 {
		return
	}
	list, err := c.Executions(ctx)
	if err != nil {
		return
	}
	known := map[string]bool{}
	for _, x := range list {
		known[x.ID] = true // also an ended one: its receipt may still be fetched
	}
	c.mu.Lock()
	ended := map[string]Group{}
	for id, g := range c.stale {
		if !known[id] {
			ended[id] = g
			delete(c.stale, id)
		}
	}
	c.mu.Unlock()
	for id, g := range ended {
		if g, ok := g.(interface{ NotAgain() }); ok {
			g.NotAgain() // what nobody waited for may be about to start: it is not among the known before that
		}
		c.removeGroup(ctx, id, g)
	}
}
