package sandbox

import (
	"context"
	"errors"
	"io/fs"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/usage"
)

// Usage samples the sandbox's cgroup. Errors: ErrNotSupported without cgroups, ErrGone.
func (h *handle) Usage(context.Context) (*usage.TaskResourceUsage, error) {
	if h.d.cfg.Cgroups == nil {
		return nil, driver.ErrNotSupported
	}
	group := h.box.group
	if group == nil || h.Ended() {
		return nil, driver.ErrGone
	}
	u, err := group.Usage()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, driver.ErrGone
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.meter.Sample(h.d.cfg.Clock.Now(), u), nil
}

// newMeter turns counters into rates for one sandbox; its first sample counts from the start.
func (d *Driver) newMeter(b *box) grouped.Meter {
	return grouped.Meter{Started: b.startedAt, CoreMHz: int64(d.cfg.CoreMHz)}
}
