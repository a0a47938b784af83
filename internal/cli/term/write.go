package term

import (
	"errors"
	"io/fs"
	"os"

	"github.com/drover-project/drover"
)

// WriteNew creates the file with mode 0644 (before umask). O_EXCL makes the check and the creation one step, so no
// file of somebody else is overwritten. Errors: Conflict if the name is taken; those of the file system.
func WriteNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return drover.Errorf(drover.Conflict, "%s is there already: name another file", name)
	case err != nil:
		return err
	}
	if _, err = f.WriteString(text); err != nil {
		_ = f.Close() // the first error says it
		return err
	}
	return f.Close()
}
