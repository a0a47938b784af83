package executor

import (
	"maps"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Bounds of a spec.
const (
	maxArgs     = 10_000
	maxArgBytes = 1 << 20
)

// Validate checks what can be checked without the runner. Errors: Invalid, naming the field.
func Validate(spec execution.Spec) error {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return drover.Errorf(drover.Invalid, "argv: missing: there is no command to run")
	}
	size := 0
	for _, a := range spec.Argv {
		size += len(a) + 1
		if strings.ContainsRune(a, 0) {
			return drover.Errorf(drover.Invalid, "argv: %q has a NUL byte", a)
		}
	}
	if len(spec.Argv) > maxArgs || size > maxArgBytes {
		return drover.Errorf(drover.Invalid, "argv: want at most %d arguments of %d bytes together", maxArgs, maxArgBytes)
	}
	if strings.ContainsRune(spec.WorkDir, 0) || strings.ContainsAny(spec.User, "\x00\n/") {
		return drover.Errorf(drover.Invalid, "workDir or user has a character that it cannot have")
	}
	if spec.TTYStderr && !spec.TTY {
		return drover.Errorf(drover.Invalid, "ttyStderr: only with tty")
	}
	if spec.Detach > environment.MaxIdleTimeout {
		return drover.Errorf(drover.Invalid, "detach %d: want at most %d ns", spec.Detach, environment.MaxIdleTimeout)
	}
	if err := environment.ValidateEnv(spec.Env); err != nil {
		return err
	}
	if err := validateSecrets(spec.Secrets); err != nil {
		return err
	}
	return environment.ValidateLimits(spec.Limits)
}

// bind fills in what the environment and the claim say. A limit over the environment's is refused: it would not hold.
func bind(spec execution.Spec, env execution.Environment, r execution.Runner) (execution.Spec, error) {
	vars := map[string]string{}
	maps.Copy(vars, env.Env)
	maps.Copy(vars, r.Env)
	maps.Copy(vars, spec.Env)
	spec.Env = vars
	spec.HideEnv = "NOMAD_" // where a runner comes from is no business of the code in it
	if spec.WorkDir == "" {
		spec.WorkDir = env.WorkDir
	}
	if spec.User == "" && !spec.Privileged {
		spec.User = env.User
	}
	limits, err := environment.BindLimits(spec.Limits, r.Limits)
	if err != nil {
		return spec, err
	}
	spec.Limits = limits
	return spec, environment.CheckLimits(spec.Limits, env)
}
