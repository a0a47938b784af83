package docker

import (
	"context"
	"errors"
	"io/fs"

	"drover"
	"drover/internal/node/driver"
)

// Usage samples the container's cgroup files, which costs the daemon nothing. Page cache that can be dropped is not
// counted as use. Errors: ErrNotSupported when the container's group cannot be seen, ErrGone once it is no more.
func (h *handle) Usage(context.Context) (*drover.TaskResourceUsage, error) {
	if h.Ended() {
		return nil, driver.ErrGone
	}
	group := h.box.usage
	if group == nil {
		return nil, driver.ErrNotSupported
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
