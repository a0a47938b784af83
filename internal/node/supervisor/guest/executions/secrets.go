package executions

import (
	"os"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// secretsDir is the variable that names a task's folder for secrets, which is in memory, and secretsVariable the one that names an
// execution's in it.
const (
	secretsDir      = "NOMAD_SECRETS_DIR"
	secretsVariable = "DROVER_SECRETS_DIR"
)

// secretFiles are the files of an execution's secrets. All work on them is done with its user's rights: it may have written what stands
// beside them.
type secretFiles struct {
	dir  string // "" = there are none
	user *spawn.User
}

// takeSecrets takes the values out of the specification, which is told to others, and returns the variables that come of them. Errors:
// Invalid; *program.Failure where the task has no folder for files.
func (x *command) takeSecrets() (given map[string]string, err error) {
	x.values, x.spec.Values = x.spec.Values, nil
	if len(x.values) != len(x.spec.Secrets) {
		return nil, drover.Errorf(drover.Invalid, "%d values of %d secrets", len(x.values), len(x.spec.Secrets))
	}
	given = map[string]string{}
	for i, s := range x.spec.Secrets {
		if s.Mask {
			x.masked = append(x.masked, x.values[i])
		}
		if s.Env != "" {
			given[s.Env] = x.values[i]
			continue
		}
		folder := x.Boot().Env[secretsDir]
		if folder == "" || !filepath.IsLocal(s.File) || filepath.Base(s.File) != s.File {
			return nil, program.CannotRun(drover.Errorf(drover.Invalid, "the task has no place for the secret %q", s.File))
		}
		x.secrets.dir = filepath.Join(folder, "exec-"+x.spec.ID)
		given[secretsVariable] = x.secrets.dir
	}
	return given, nil
}

// writeSecrets writes the files. Errors: *program.Failure.
func (x *command) writeSecrets(user *spawn.User) error {
	defer func() { x.values = nil }()
	if x.secrets.dir == "" {
		return nil
	}
	x.secrets.user = user
	err := x.asUser(func() error {
		if err := os.Mkdir(x.secrets.dir, 0o700); err != nil {
			return err
		}
		for i, s := range x.spec.Secrets {
			if s.File == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(x.secrets.dir, s.File), []byte(x.values[i]), 0o400); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return program.CannotRun(drover.Errorf(drover.Internal, "writing the secrets: %w", err))
	}
	return nil
}

// removeSecrets removes the files.
func (x *command) removeSecrets() {
	if x.secrets.dir == "" {
		return
	}
	_ = x.asUser(func() error { return os.RemoveAll(x.secrets.dir) }) // what the user keeps from being removed goes with the task
}

// asUser does file work with the rights of the execution's user.
func (x *command) asUser(work func() error) error {
	u := x.secrets.user
	if u == nil {
		return work()
	}
	boot := *x.Boot()
	boot.UID, boot.GID, boot.Groups = u.UID, u.GID, u.Groups
	return x.Accounts.As(&boot, false, work)
}
