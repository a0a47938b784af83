package environment

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/optional"
)

// The names that an environment's job is made of.
const (
	JobPrefix = execution.EnvironmentJobPrefix
	GroupName = "runner"
	TaskName  = "runner"

	metaKey = "drover.environment" // the fields that a job has no place for, as JSON
)

// Defaults of fields that are zero. They are small, so that many warm runners fit a machine; MemoryMaxMB is what a
// program may really use.
const (
	DefaultCPU         = 20  // MHz
	DefaultMemoryMB    = 32  // reserved
	DefaultMemoryMaxMB = 512 // limit
	DefaultDiskMB      = 64
	DefaultPidsLimit   = 256
	DefaultDriver      = "sandbox"
	HostImage          = "host" // the node's own /usr
)

// JobOf returns the job that keeps the runners of the environment with the key (execution.Key).
func JobOf(key string) drover.NamespacedID {
	_, id := execution.SplitKey(key)
	return drover.NamespacedID{Namespace: execution.NamespaceOf(key), ID: JobPrefix + id}
}

// KeyOf returns the key of the environment whose runners the job keeps; false if it is not an environment's job.
func KeyOf(job drover.NamespacedID) (string, bool) {
	id, ok := strings.CutPrefix(job.ID, JobPrefix)
	return execution.Key(job.Namespace, id), ok && id != "" && !execution.IsKey(id)
}

// Canonicalize returns a copy with the defaults filled in and everything that may be written in several ways written
// in one, so that two equal environments are equal values.
func Canonicalize(env execution.Environment) execution.Environment {
	env.Namespace, env.ID = execution.SplitKey(env.Key())
	optional.Default(&env.Driver, DefaultDriver)
	optional.Default(&env.CPU, DefaultCPU)
	optional.Default(&env.DiskMB, DefaultDiskMB)
	optional.Default(&env.PidsLimit, DefaultPidsLimit)
	switch {
	case env.MemoryMB == 0 && env.MemoryMaxMB == 0:
		env.MemoryMB, env.MemoryMaxMB = DefaultMemoryMB, DefaultMemoryMaxMB
	case env.MemoryMB == 0:
		env.MemoryMB = min(DefaultMemoryMB, env.MemoryMaxMB)
	case env.MemoryMaxMB == 0:
		env.MemoryMaxMB = env.MemoryMB
	}
	if len(env.ExposedPorts) == 0 {
		env.ExposedPorts = nil
	} else {
		env.ExposedPorts = slices.Compact(slices.Sorted(slices.Values(env.ExposedPorts)))
	}
	env.Env, env.Meta = copyOrNil(env.Env), copyOrNil(env.Meta)
	if len(env.Constraints) == 0 {
		env.Constraints = nil
	}
	return env
}

// copyOrNil makes no difference between an empty map and none, which JSON does not keep apart either.
func copyOrNil(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}

// MaxIdleTimeout bounds idle timeouts, so that sums of times cannot overflow.
const MaxIdleTimeout = 10 * 365 * 24 * time.Hour
