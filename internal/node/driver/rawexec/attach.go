package rawexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// stateData is what Attach needs.
type stateData struct {
	StateDir string
	Group    string // of the task; "" = none
	Warm     bool
	Joined   bool `json:",omitempty"` // in its group's network namespace
	// Elsewhere: in control groups of the machine's own.
	Elsewhere bool `json:",omitempty"`
}

// groupName is unique: an earlier start of the task may still be dying.
func groupName(id string) string { return strings.ReplaceAll(id, "/", "_") }

// state is what the agent stores for Attach.
func (h *handle) state(spec driver.Spec) driver.State {
	data, _ := json.Marshal(stateData{ // cannot fail: plain data
		StateDir: h.stateDir, Group: h.groupName, Warm: h.warm, Joined: h.joined, Elsewhere: h.elsewhere,
	})
	return driver.State{Driver: Name, ID: spec.ID, AllocID: spec.AllocID, TaskName: spec.TaskName, StartedAt: h.startedAt, Data: data}
}

// attachPatience bounds connecting to a supervisor, which answers at once unless the machine is overloaded.
const attachPatience = 10 * time.Second

// Attach finds a task again after an agent restart. Errors: driver.ErrGone; what such a task left is removed.
func (d *Driver) Attach(ctx context.Context, state driver.State) (driver.Handle, error) {
	if len(state.Data) == 0 {
		return d.adopt(ctx, state)
	}
	var data stateData
	if err := json.Unmarshal(state.Data, &data); err != nil || data.StateDir == "" {
		return nil, fmt.Errorf("reading the state of %s: %w", state.ID, errors.Join(driver.ErrGone, err))
	}
	h := &handle{
		d:         d,
		stateDir:  data.StateDir,
		groupName: data.Group,
		warm:      data.Warm,
		joined:    data.Joined,
		elsewhere: data.Elsewhere,
		startedAt: state.StartedAt,
		ident:     state,
	}
	if data.Group != "" && d.cfg.Cgroups != nil {
		h.group, _ = d.cfg.Cgroups.Open(data.Group) // gone: then so is the task
	}
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, attachPatience)
	defer cancel()
	client, err := supervisor.Connect(ctx, supervisor.SocketPath(data.StateDir), h.options())
	if errors.Is(err, driver.ErrGone) {
		return nil, errors.Join(err, h.free(context.WithoutCancel(ctx), nil))
	}
	if err != nil {
		return nil, fmt.Errorf("attaching to %s: %w", state.ID, err)
	}
	h.connected(client)
	return h, nil
}

// adopt finds the task of a start that came so far that its program was executed, before the agent was killed: it must not
// be started twice. What did not come so far is ended. Errors: driver.ErrGone.
func (d *Driver) adopt(ctx context.Context, state driver.State) (driver.Handle, error) {
	if state.StateDir == "" {
		return nil, fmt.Errorf("%s was never started: %w", state.ID, driver.ErrGone)
	}
	h := &handle{d: d, stateDir: state.StateDir, startedAt: d.cfg.Clock.Now(), joined: true} // nobody wrote down whether it is
	if d.cfg.Cgroups != nil {
		h.groupName = groupName(state.ID)
		h.group, _ = d.cfg.Cgroups.Open(h.groupName) // none: it did not come so far
	}
	h.ident = h.state(driver.Spec{ID: state.ID, AllocID: state.AllocID, TaskName: state.TaskName})
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, attachPatience)
	defer cancel()
	client, err := supervisor.Connect(ctx, supervisor.SocketPath(state.StateDir), h.options())
	started := false
	if err == nil && client.ID() == state.ID {
		started, err = client.TaskStarted(ctx)
	}
	if !started {
		gone := fmt.Errorf("the start %s was interrupted: %w", state.ID, driver.ErrGone)
		return nil, errors.Join(gone, err, h.free(context.WithoutCancel(ctx), client))
	}
	h.connected(client)
	return h, nil
}
