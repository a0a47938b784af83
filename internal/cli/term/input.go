package term

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/drover-project/drover"
)

// KeyValues reads key=value words into a map, which is never nil. The value may be empty and hold further "="; the
// last of equal keys counts. flag stands in the error. Errors: Invalid.
func KeyValues(flag string, words []string) (map[string]string, error) {
	m := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, drover.Errorf(drover.Invalid, "%s %q: want key=value", flag, w)
		}
		m[k] = v
	}
	return m, nil
}

// ReadInput reads a whole file, or stdin for "-". Errors: Invalid if it cannot be read; Canceled if ctx ends first,
// as stdin may never end.
func (a *App) ReadInput(ctx context.Context, path string) ([]byte, error) {
	text, err := UnlessInterrupted(ctx, func() ([]byte, error) {
		if path == "-" {
			return io.ReadAll(a.In)
		}
		return os.ReadFile(path)
	})
	if err != nil {
		var p *fs.PathError
		switch {
		case drover.CodeOf(err) == drover.Canceled:
			return nil, err
		case errors.As(err, &p):
			err = p.Err
		}
		return nil, drover.Errorf(drover.Invalid, "reading %s: %w", path, err)
	}
	return text, nil
}
