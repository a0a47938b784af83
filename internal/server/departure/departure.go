package departure

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// Cluster is this server among others; *servers.Servers is one.
type Cluster interface {
	// Leave hands leadership over and tells the others that this server goes for good.
	Leave(ctx context.Context) error
	// HandOver makes another server the leader, if this one is it.
	HandOver(ctx context.Context)
}

// Node is the node of this process; *agent.Agent is one.
type Node interface {
	// Leave has the node's work moved away, and returns when that is done or the deadline passed.
	Leave(ctx context.Context, spec drover.DrainSpec) error
}

// Departure is how an agent goes.
type Departure struct {
	Config  *config.Agent
	Cluster Cluster // nil for a server that is alone, and without one
	Node    Node    // nil without
	Log     *slog.Logger
}

// Context returns a context that ends with ctx, but after the node was drained, if the configuration wants that, and this server handed
// leadership over. It has left the cluster by then if the configuration wants that for the signal which ends the process.
func (d Departure) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Cluster == nil && (d.Node == nil || d.Config.Client.Leaves() == nil) {
		return ctx, func() {}
	}
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		leaves := d.forGood(cause)
		if leaves {
			d.drain(out)
		}
		switch {
		case d.Cluster != nil && leaves:
			if err := d.Cluster.Leave(context.WithoutCancel(ctx)); err != nil {
				d.Log.Warn("leaving the cluster", "error", err)
			}
		case d.Cluster != nil:
			d.Cluster.HandOver(context.WithoutCancel(ctx))
		}
		cancel(cause)
	})
	return out, func() { unwatch(); cancel(nil) }
}

// drain has this node's work moved away, if the configuration wants that.
func (d Departure) drain(ctx context.Context) {
	spec := d.Config.Client.Leaves()
	if d.Node == nil || spec == nil {
		return
	}
	d.Log.Info("the node is drained before the agent ends; a second signal ends it at once", "deadline", spec.Deadline,
		"ignore_system_jobs", spec.IgnoreSystemJobs)
	if err := d.Node.Leave(ctx, *spec); err != nil {
		d.Log.Warn("the node is not drained to the end", "key", "client.drain_on_shutdown", "error", err)
		return
	}
	d.Log.Info("the node is drained")
}

// forGood reports whether the agent leaves when that ends the process: the server the cluster for good, the node after a drain.
func (d Departure) forGood(cause error) bool {
	var by interface{ Signal() os.Signal }
	if !errors.As(cause, &by) {
		return false
	}
	return by.Signal() == syscall.SIGINT && optional.Value(d.Config.LeaveOnInterrupt) ||
		by.Signal() == syscall.SIGTERM && optional.Value(d.Config.LeaveOnTerminate)
}
