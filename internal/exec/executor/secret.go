package executor

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/lazyregexp"
)

// maxSecrets bounds how many secrets an execution gets.
const maxSecrets = 64

// Names of what secrets become.
var (
	secretEnv  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	secretFile = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
)

// validateSecrets checks what is asked for. Errors: Invalid, naming the field.
func validateSecrets(list []execution.Secret) error {
	if len(list) > maxSecrets {
		return drover.Errorf(drover.Invalid, "secrets: %d, want at most %d", len(list), maxSecrets)
	}
	names := map[string]bool{}
	for i, s := range list {
		name := s.Env
		if s.File != "" {
			name = "/" + s.File
		}
		switch {
		case s.Identity != "" && (s.Namespace != "" || s.Path != "" || s.Key != ""):
			return drover.Errorf(drover.Invalid, "secrets[%d]: identity: it is no item of a variable: leave namespace, path and key out", i)
		case s.Identity == "" && (s.Path == "" || s.Key == ""):
			return drover.Errorf(drover.Invalid, "secrets[%d]: path and key: name a variable and one of its items, or an identity", i)
		case (s.Env == "") == (s.File == ""):
			return drover.Errorf(drover.Invalid, "secrets[%d]: env or file: want one of them", i)
		case s.Env != "" && !secretEnv().MatchString(s.Env):
			return drover.Errorf(drover.Invalid, "secrets[%d].env: %q is no name of a variable", i, s.Env)
		case s.File != "" && !secretFile().MatchString(s.File):
			return drover.Errorf(drover.Invalid, "secrets[%d].file: %q: want letters, digits, '_', '.' and '-', and no folder", i, s.File)
		case names[name]:
			return drover.Errorf(drover.Invalid, "secrets[%d]: another one has the same env or file", i)
		}
		names[name] = true
	}
	return nil
}
