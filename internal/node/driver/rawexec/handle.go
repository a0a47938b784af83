package rawexec

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/network"
)

// handle is a running task.
type handle struct {
	*supervised.Task // nil while it starts
	// Constant.
	d         *Driver
	ident     driver.State
	stateDir  string
	groupName string
	warm      bool // no program of its own: a warm runner
	joined    bool // in its group's network namespace
	elsewhere bool // in control groups of the machine's own
	startedAt time.Time
	group     *cgroup.Group // nil without control groups

	mu    sync.Mutex
	meter grouped.Meter // guarded by mu
}

var (
	_ driver.Handle = (*handle)(nil)
	_ driver.Execer = (*handle)(nil)
	_ driver.Filer  = (*handle)(nil)
	_ driver.Meter  = (*handle)(nil)
)

// groups are those that executions run in: in a group of their own, beside the task's processes, into which they are cloned.
func (h *handle) groups() *grouped.Groups {
	return &grouped.Groups{Task: h.group, Clock: h.d.cfg.Clock, Clone: true, Apart: true}
}

// options are those of every connection to the task's supervisor.
func (h *handle) options() supervisor.Options {
	return supervisor.Options{Clock: h.d.cfg.Clock, Log: h.d.cfg.Log, Groups: h.groups()}
}

// connected makes the handle one of a task that runs.
func (h *handle) connected(client *supervisor.Client) {
	h.Task = supervised.New(supervised.Config{
		Connect: supervised.At(h.stateDir, h.options), Warm: h.warm, OOMKills: h.groups().OOMKills,
	}, client)
}

// State returns what Attach needs.
func (h *handle) State() driver.State { return h.ident }

// Network returns nil: the task is in the host's, or in its group's.
func (h *handle) Network() *network.Status { return nil }

// destroyPatience is how long a supervisor may take to kill everything, before it is killed itself.
const destroyPatience = 10 * time.Second

// Destroy kills what is left and frees everything. Idempotent.
func (h *handle) Destroy(ctx context.Context) error {
	if h.Ended() {
		return nil
	}
	h.Stopping()
	var err error
	if h.handOn(ctx) {
		err = h.removeGroup(ctx)
	} else {
		err = h.free(ctx, h.Last())
	}
	if err == nil {
		h.End()
	}
	return err
}

// handOn gives the supervisor of an ended task away for the next, and reports whether that could be.
func (h *handle) handOn(ctx context.Context) bool {
	return h.d.pool != nil && !h.warm && !h.joined && !h.elsewhere && h.d.pool.Put(ctx, h.stateDir, h.options())
}

// removeGroup kills what is left in the task's control group, and removes it; nothing to do without one.
func (h *handle) removeGroup(ctx context.Context) error {
	if h.group == nil {
		return nil
	}
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, destroyPatience)
	defer cancel()
	return h.group.Remove(ctx, h.d.cfg.Clock)
}

// free ends the supervisor, which may be gone (nil: it is looked for), and removes all that the task has on the machine.
func (h *handle) free(ctx context.Context, client *supervisor.Client) error {
	ctx, cancel := h.d.cfg.Clock.WithTimeout(ctx, destroyPatience)
	defer cancel()
	var errs []error
	if client == nil {
		client, _ = supervisor.Connect(ctx, supervisor.SocketPath(h.stateDir), h.options())
	}
	orderly := false // the supervisor lived, and has killed all that it ran
	if client != nil {
		select {
		case <-client.Done():
		default:
			orderly = true
		}
		err := client.Shutdown(ctx)
		orderly = orderly && err == nil
		errs = append(errs, err)
		_ = client.Close() // it ended
	} else {
		errs = append(errs, supervisor.Bury(ctx, h.stateDir, h.d.cfg.Clock))
	}
	// Without a group and an orderly end, only the environment tells whose a process is.
	if h.group == nil && !orderly {
		killMarked(h.ident)
	}
	errs = append(errs, h.removeGroup(ctx))
	return errors.Join(append(errs, os.RemoveAll(h.stateDir))...)
}
