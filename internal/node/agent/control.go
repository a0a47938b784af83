package agent

import (
	"context"
	"errors"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/usage"
)

// RestartTask restarts one task, all that run, or with all the whole allocation.
func (a *Agent) RestartTask(ctx context.Context, allocID, task string, all bool) error {
	r, err := a.runner(allocID)
	if err != nil {
		return err
	}
	return r.Restart(ctx, task, all)
}

// SignalTask sends a signal to one task, or all that run.
func (a *Agent) SignalTask(ctx context.Context, allocID, task, signal string) error {
	r, err := a.runner(allocID)
	if err != nil {
		return err
	}
	return coded(r.Signal(ctx, task, signal), allocID)
}

// AllocChecks returns what the checks of an allocation's services found last. Errors: NotFound.
func (a *Agent) AllocChecks(_ context.Context, allocID string) (map[string]service.CheckStatus, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	return r.CheckStatuses(), nil
}

// AllocStats samples the running tasks, or one, and measures the allocation's folder. Errors: NotFound, Gone.
func (a *Agent) AllocStats(ctx context.Context, allocID, task string) (*usage.AllocResourceUsage, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	handles := r.Handles()
	if task != "" {
		h, err := r.Handle(task)
		if err != nil {
			return nil, err
		}
		handles = map[string]driver.Handle{task: h}
	}
	out := &usage.AllocResourceUsage{Tasks: map[string]*usage.TaskResourceUsage{}}
	for name, h := range handles {
		usage, err := a.usage(ctx, allocID, name, h)
		if errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrNotSupported) {
			continue
		}
		if err != nil {
			return nil, coded(err, allocID)
		}
		out.Tasks[name] = usage
	}
	a.addDevices(ctx, r.View().Alloc, out)
	sum(out)
	out.Disk = a.disk.Usage(allocID, r.Dir().Usage)
	return out, nil
}

// usage returns the task's published sample if samples are published, and otherwise takes a new one.
func (a *Agent) usage(ctx context.Context, allocID, task string, h driver.Handle) (*usage.TaskResourceUsage, error) {
	if u := a.samples.get(allocID, task); u != nil {
		return u, nil
	}
	m, ok := h.(driver.Meter)
	if !ok {
		return nil, driver.ErrNotSupported
	}
	return m.Usage(ctx)
}

// NodeStats samples the machine.
func (a *Agent) NodeStats(ctx context.Context) (*usage.HostStats, error) {
	if a.host == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this node does not measure its machine")
	}
	out, err := a.host.Host(a.root.Path())
	if err != nil || a.devices == nil {
		return out, err
	}
	// The sample may be one that others have, too.
	with := *out
	with.DeviceStats = a.devices.Stats(ctx, func(string) bool { return true })
	return &with, nil
}
