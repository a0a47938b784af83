package sandboxsetup

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// Explain adds to a script's failure what a person can do about it.
func Explain(err error) error {
	if e := (*spawn.ScriptError)(nil); errors.As(err, &e) && e.What == mountingProc && e.Errno == unix.EPERM {
		return fmt.Errorf(
			"%w (parts of the agent's own /proc are covered, as in a container: run that one with --security-opt systempaths=unconfined)",
			err,
		)
	}
	return err
}
