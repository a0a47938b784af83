package grouped

import (
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
)

// Limits are what a task's resources mean to control groups, as in Nomad. CPUMHz is a share. MemoryMB is the limit, unless MemoryMaxMB
// allows more (-1: as much as there is); then it is what is reserved. quota, if not 0, is a hard limit of cores.
func Limits(spec *driver.Spec, quota float64) cgroup.Limits {
	l := cgroup.Limits{MemoryMax: spec.MemoryMB << 20, CPUShares: spec.CPUMHz, Cores: spec.Cores, CPUQuota: quota}
	switch {
	case spec.MemoryMaxMB < 0:
		l.MemoryMax, l.MemoryLow = 0, spec.MemoryMB<<20
	case spec.MemoryMaxMB > spec.MemoryMB:
		l.MemoryMax, l.MemoryLow = spec.MemoryMaxMB<<20, spec.MemoryMB<<20
	}
	return l
}
