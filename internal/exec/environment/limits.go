package environment

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// ValidateLimits checks limits by themselves. Errors: Invalid, naming the field.
func ValidateLimits(l drover.Limits) error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"wall", l.Wall}, {"cpu", l.CPU}} {
		if d.value < 0 || d.value > MaxIdleTimeout {
			return drover.Errorf(drover.Invalid, "limits.%s %d: want 0 to %d ns", d.field, d.value, MaxIdleTimeout)
		}
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"cpuMHz", int64(l.CPUMHz)},
		{"memoryMB", int64(l.MemoryMB)},
		{"pids", int64(l.Pids)},
		{"outputBytes", l.OutputBytes},
		{"openFiles", int64(l.OpenFiles)},
		{"fileSizeMB", int64(l.FileSizeMB)},
	} {
		if n.value < 0 || n.value > 1<<50 {
			return drover.Errorf(drover.Invalid, "limits.%s %d: want 0 to 2^50", n.field, n.value)
		}
	}
	return nil
}

// CheckLimits refuses limits over the environment's: they would not hold. Errors: Invalid.
func CheckLimits(l drover.Limits, env execution.Environment) error {
	if env.MemoryMaxMB > 0 && l.MemoryMB > env.MemoryMaxMB {
		return drover.Errorf(drover.Invalid, "limits.memoryMB %d: the environment has %d", l.MemoryMB, env.MemoryMaxMB)
	}
	if env.PidsLimit > 0 && l.Pids > env.PidsLimit {
		return drover.Errorf(drover.Invalid, "limits.pids %d: the environment has %d", l.Pids, env.PidsLimit)
	}
	if env.CPU > 0 && l.CPUMHz > env.CPU {
		return drover.Errorf(drover.Invalid, "limits.cpuMHz %d: the environment has %d", l.CPUMHz, env.CPU)
	}
	return nil
}

// BindLimits fills in what the claim says where the execution says nothing. Errors: Invalid for a limit over the
// claim's.
func BindLimits(l drover.Limits, claim *drover.Limits) (drover.Limits, error) {
	if claim == nil {
		return l, nil
	}
	err := error(nil)
	bind := func(field string, value, bound int64) int64 {
		switch {
		case bound == 0:
			return value
		case value > bound:
			err = drover.Errorf(drover.Invalid, "limits.%s %d: the runner was claimed with %d", field, value, bound)
		case value == 0:
			return bound
		}
		return value
	}
	return drover.Limits{
		Wall:        time.Duration(bind("wall", int64(l.Wall), int64(claim.Wall))),
		CPU:         time.Duration(bind("cpu", int64(l.CPU), int64(claim.CPU))),
		CPUMHz:      int(bind("cpuMHz", int64(l.CPUMHz), int64(claim.CPUMHz))),
		MemoryMB:    int(bind("memoryMB", int64(l.MemoryMB), int64(claim.MemoryMB))),
		Pids:        int(bind("pids", int64(l.Pids), int64(claim.Pids))),
		OutputBytes: bind("outputBytes", l.OutputBytes, claim.OutputBytes),
		OpenFiles:   int(bind("openFiles", int64(l.OpenFiles), int64(claim.OpenFiles))),
		FileSizeMB:  int(bind("fileSizeMB", int64(l.FileSizeMB), int64(claim.FileSizeMB))),
	}, err
}
