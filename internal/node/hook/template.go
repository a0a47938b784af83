package hook

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/rendering"
)

// Evaluator has a function evaluate a text where that can harm nobody; *evaluator.Children is one.
type Evaluator interface {
	Evaluate(ctx context.Context, name string, content []byte) ([]byte, error)
}

// templates renders a task's templates before each start. What they ask is followed from then on: see Live.
type templates struct{ settings Settings }

func (templates) Name() string { return "template" }

// Once is false: each start renders again, as a result with env = true is not kept with the task.
func (templates) Once() bool { return false }

// Prestart renders the templates in the order of the job, and waits for what they lack. A later one sees the environment that an earlier
// one with env = true added.
func (h templates) Prestart(ctx context.Context, r *Request) error {
	if len(r.Task.Templates) == 0 {
		return nil
	}
	if h.settings.Evaluator == nil {
		return drover.Errorf(drover.Internal, "this node has nothing that renders templates")
	}
	l := newLive(ctx, h.settings, r)
	r.Live = l
	err := l.first(ctx)
	if err != nil || !l.asks() {
		l.Close()
	}
	return err
}

// templateSource returns the template's text: the embedded one, or that of a file. Errors: as readFile's.
func templateSource(r *Request, t *drover.Template) (string, error) {
	if t.SourcePath == "" {
		return t.EmbeddedTmpl, nil
	}
	text, err := readFile(r, t.SourcePath)
	if err != nil {
		return "", fmt.Errorf("the source %q: %w", t.SourcePath, err)
	}
	return text, nil
}

// readFile reads a regular file in the allocation's folder, of at most rendering.Max bytes. Errors: Invalid, TooLarge, fs.ErrNotExist.
func readFile(r *Request, path string) (string, error) {
	root, rel, err := r.place(path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0) // a task may have put a fifo there
	if err != nil {
		return "", fmt.Errorf("opening the file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", drover.Errorf(drover.Invalid, "is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, rendering.Max+1))
	if err == nil && len(data) > rendering.Max {
		err = drover.Errorf(drover.TooLarge, "has more than %d bytes", rendering.Max)
	}
	return string(data), err
}

// parsePerms reads permissions in octal; "" is 0644, as in Nomad. Bits beyond the nine for user, group and others are
// dropped.
func parsePerms(s string) (os.FileMode, error) {
	if s == "" {
		return 0o644, nil
	}
	n, err := strconv.ParseUint(s, 8, 12)
	if err != nil {
		return 0, drover.Errorf(drover.Invalid, "perms %q: must be octal", s)
	}
	return os.FileMode(n) & os.ModePerm, nil
}

// parseEnvFile reads KEY=value lines; empty lines and those with # are skipped, quotes around a value taken off.
func parseEnvFile(s string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(s) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(k) == "" {
			return nil, drover.Errorf(drover.Invalid, "environment line %q: is not KEY=value", line)
		}
		v = strings.TrimSpace(v)
		if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
			if unquoted, err := strconv.Unquote(v); err == nil {
				v = unquoted
			} else {
				v = v[1 : len(v)-1]
			}
		}
		out[strings.TrimSpace(k)] = v
	}
	return out, nil
}
