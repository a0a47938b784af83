package environment

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/lazyregexp"
)

// Bounds of an environment's fields.
const (
	MaxPoolSize  = drover.DefaultMaxCount
	minMemoryMB  = 10 // Job.Validate has it too
	maxEnvVars   = 1_000
	maxEnvBytes  = 128 << 10
	maxPorts     = 64
	maxIDLength  = 64
	maxMetaBytes = 64 << 10
)

// idForm keeps ids fit for job ids, paths and file names: without slashes, blanks and a dot in front.
var idForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Validate reports everything that is wrong with the environment, each with its field. Errors: Invalid.
func Validate(env execution.Environment) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if !idForm().MatchString(env.ID) || len(env.ID) > maxIDLength {
		fault("id %q: want 1 to %d letters, digits, '.', '_' or '-', the first a letter or digit", env.ID, maxIDLength)
	}
	if execution.IsKey(env.Namespace) {
		fault("namespace %q: want letters, digits and '-'", env.Namespace)
	}
	if err := validateImage(env); err != nil {
		fault("image: %w", err)
	}
	drivers := []string{"", "sandbox", "docker", "podman", "raw_exec", "mock_driver"}
	if !slices.Contains(drivers, env.Driver) {
		fault("driver %q: want sandbox, docker, podman or raw_exec", env.Driver)
	}
	if env.Runtime != "" && env.Driver != "docker" {
		fault("runtime: only the docker driver has runtimes")
	}
	faults = append(faults, validateSizes(env)...)
	faults = append(faults, validatePorts(env)...)
	faults = append(faults, validateIdentity(env.Identity)...)
	if env.WorkDir != "" && (!path.IsAbs(env.WorkDir) || strings.ContainsRune(env.WorkDir, 0)) {
		fault("workDir %q: want an absolute path", env.WorkDir)
	}
	if strings.ContainsAny(env.User, "\x00\n/ ") {
		fault("user %q: want a name or uid[:gid]", env.User)
	}
	if env.IdleTimeout < 0 || env.IdleTimeout > MaxIdleTimeout {
		fault("idleTimeout %d: want 0 to %d ns", env.IdleTimeout, MaxIdleTimeout)
	}
	if err := ValidateEnv(env.Env); err != nil {
		fault("%w", err)
	}
	if size(env.Meta) > maxMetaBytes {
		fault("meta: %d bytes, want at most %d", size(env.Meta), maxMetaBytes)
	}
	if len(faults) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "%w", join(faults))
}

// validateSizes checks each number by itself, and those that bound each other.
func validateSizes(env execution.Environment) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, n := range []struct {
		field      string
		value, max int
		least      int // of what is not 0
	}{
		{"poolSize", env.PoolSize, MaxPoolSize, 0},
		{"maxRunners", env.MaxRunners, MaxPoolSize, 0},
		{"cpu", env.CPU, math.MaxInt32, 0},
		{"memoryMB", env.MemoryMB, math.MaxInt32, minMemoryMB},
		{"memoryMaxMB", env.MemoryMaxMB, math.MaxInt32, minMemoryMB},
		{"diskMB", env.DiskMB, math.MaxInt32, 0},
		{"pidsLimit", env.PidsLimit, 4 << 20, 0},
	} {
		if n.value < 0 || n.value > n.max {
			fault("%s %d: want 0 to %d", n.field, n.value, n.max)
		} else if n.value != 0 && n.value < n.least {
			fault("%s %d: want at least %d", n.field, n.value, n.least)
		}
	}
	if env.MaxRunners > 0 && env.PoolSize > env.MaxRunners {
		fault("poolSize %d is over maxRunners %d", env.PoolSize, env.MaxRunners)
	}
	if env.MemoryMaxMB > 0 && env.MemoryMB > env.MemoryMaxMB {
		fault("memoryMB %d is over memoryMaxMB %d", env.MemoryMB, env.MemoryMaxMB)
	}
	return faults
}

// validatePorts allows doubles: Canonicalize removes them.
func validatePorts(env execution.Environment) (faults []error) {
	if len(env.ExposedPorts) > maxPorts {
		faults = append(faults, fmt.Errorf("exposedPorts: %d of them, want at most %d", len(env.ExposedPorts), maxPorts))
	}
	if slices.Contains(env.ExposedPorts, 0) {
		faults = append(faults, errors.New("exposedPorts: port 0"))
	}
	return faults
}

// ValidateEnv checks environment variables. Errors: Invalid.
func ValidateEnv(env map[string]string) error {
	if len(env) > maxEnvVars || size(env) > maxEnvBytes {
		return drover.Errorf(drover.Invalid, "env: want at most %d variables of %d bytes together", maxEnvVars, maxEnvBytes)
	}
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return drover.Errorf(drover.Invalid, "env: variable %q: empty name, '=' in the name, or a NUL byte", name)
		}
	}
	return nil
}

// size is how many bytes the names and values take together.
func size(m map[string]string) (n int) {
	for k, v := range m {
		n += len(k) + len(v)
	}
	return n
}

// join puts all faults on one line.
func join(faults []error) error {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
