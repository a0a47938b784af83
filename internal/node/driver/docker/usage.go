package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/usage"
)

// Usage samples the container's cgroup files, which costs the daemon nothing; where they cannot be read, the daemon is
// asked. Page cache is not counted as use. Errors: ErrGone once the container is no more, Unavailable while a daemon that
// is needed is away.
func (h *handle) Usage(ctx context.Context) (*usage.TaskResourceUsage, error) {
	if h.Ended() {
		return nil, driver.ErrGone
	}
	u, err := h.d.used(ctx, h.box)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.meter.Sample(h.d.cfg.Clock.Now(), u), nil
}

// used reads one sample of the counters, from the control group if it can be read. Errors: ErrGone, Unavailable.
func (d *Driver) used(ctx context.Context, b *box) (cgroup.Usage, error) {
	if b.usage == nil {
		return d.askUsage(ctx, b)
	}
	u, err := b.usage.Usage()
	if errors.Is(err, fs.ErrNotExist) {
		err = driver.ErrGone
	}
	return u, err
}

// askUsage asks the daemon for one sample, without the one before it, for which it would wait a second.
func (d *Driver) askUsage(ctx context.Context, b *box) (cgroup.Usage, error) {
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	r, err := d.docker.ContainerStats(ctx, b.id, client.ContainerStatsOptions{})
	if cerrdefs.IsNotFound(err) {
		return cgroup.Usage{}, driver.ErrGone
	}
	if err != nil {
		return cgroup.Usage{}, dockererr.Of(err)
	}
	defer r.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return cgroup.Usage{}, drover.Errorf(drover.Unavailable, "reading the daemon's statistics: %w", err)
	}
	if s.Read.IsZero() || s.CPUStats.CPUUsage.TotalUsage == 0 { // how it says that the container does not run
		return cgroup.Usage{}, driver.ErrGone
	}
	return fromDaemon(&s), nil
}

// fromDaemon reads the daemon's sample. Its memory figures have the names of the cgroup version's files.
func fromDaemon(s *container.StatsResponse) cgroup.Usage {
	first := func(keys ...string) int64 {
		for _, k := range keys {
			if v, ok := s.MemoryStats.Stats[k]; ok {
				return int64(v) // bytes of a machine
			}
		}
		return 0
	}
	cpu := s.CPUStats.CPUUsage
	u := cgroup.Usage{
		CPUTotal: nanos(cpu.TotalUsage), CPUUser: nanos(cpu.UsageInUsermode), CPUSystem: nanos(cpu.UsageInKernelmode),
		Throttled: s.CPUStats.ThrottlingData.ThrottledPeriods, ThrottledTime: nanos(s.CPUStats.ThrottlingData.ThrottledTime),
		RSS: first("total_rss", "anon"), Cache: first("total_cache", "file"), MappedFile: first("total_mapped_file", "file_mapped"),
		Swap: first("total_swap"), MemoryRaw: int64(s.MemoryStats.Usage), MemoryPeak: int64(s.MemoryStats.MaxUsage), // as above
	}
	return u.WithoutCache(first("total_shmem", "shmem"))
}

// nanos reads one of the daemon's counters of time.
func nanos(n uint64) time.Duration { return time.Duration(n) } // time that a machine has run
