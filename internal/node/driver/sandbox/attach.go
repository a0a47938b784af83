package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Attach finds a sandbox again after an agent restart. One whose supervisor is gone, or whose program an interrupted start
// had not executed, is cleared away. Errors: ErrGone.
func (d *Driver) Attach(ctx context.Context, state driver.State) (driver.Handle, error) {
	state, interrupted, err := supervised.Kept(state)
	if err != nil {
		return nil, errors.Join(err, d.clear(ctx, state))
	}
	var s stored
	if err := json.Unmarshal(state.Data, &s); err != nil {
		return nil, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	// Everything is held before the supervisor is asked, so that free gives it back whatever the answer is.
	b := &box{
		slot: s.Slot, slotTaken: true, stateDir: s.StateDir, startedAt: state.StartedAt, pid: s.Pid, startTicks: s.StartTicks,
		disk: s.Disk,
	}
	b.rootfs = d.cfg.Images.Hold(s.Image, s.Digest)
	d.ids.hold(s.Slot)
	if s.Group != "" && d.cfg.Cgroups != nil {
		if group, err := d.cfg.Cgroups.Open(s.Group); err == nil {
			b.group = group
		}
	}
	if address, err := netip.ParseAddr(s.Address); err == nil {
		d.bridge.Hold(address, s.IPv6)
		b.net = &bridging{address: address, ports: s.Ports, shown: d.bridge.Status(address)}
	}
	client, err := supervisor.Connect(ctx, supervisor.SocketPath(s.StateDir), b.options(d))
	if err == nil && interrupted && !supervised.Started(ctx, client, state.ID) {
		err = errors.Join(driver.ErrGone, client.Close())
	}
	if errors.Is(err, driver.ErrGone) {
		return nil, errors.Join(driver.ErrGone, d.free(ctx, b))
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the sandbox's supervisor: %w", err)
	}
	if err := d.forward(b); err != nil { // the sandbox runs on, as it did while there was no agent
		d.cfg.Log.Error("forwarding a sandbox's ports again", "alloc", state.AllocID, "task", state.TaskName, "error", err)
	}
	h := newHandle(d, b, client, state, s.Warm)
	h.watchDisk(ctx)
	return h, nil
}

// clear ends and removes what a start left that was interrupted before its state was kept. Its ids and its address were
// not written down, so nobody holds them.
func (d *Driver) clear(ctx context.Context, state driver.State) error {
	if state.StateDir == "" {
		return nil
	}
	if err := supervisor.Clean(ctx, state.StateDir, supervisor.Options{Clock: d.cfg.Clock, Log: d.cfg.Log}); err != nil {
		return err
	}
	if d.cfg.Cgroups == nil {
		return nil
	}
	group, err := d.cfg.Cgroups.Open(groupName(state.AllocID, state.TaskName))
	if drover.CodeOf(err) == drover.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return group.Remove(ctx, d.cfg.Clock)
}
