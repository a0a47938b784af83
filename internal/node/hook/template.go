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
	"github.com/drover-project/drover/internal/optional"
)

// Evaluator has a function evaluate a text where that can harm nobody; *evaluator.Children is one.
type Evaluator interface {
	Evaluate(ctx context.Context, name string, content []byte) ([]byte, error)
}

// templates renders a task's templates. Sources are literals and files of the allocation; what they can ask is the
// task's environment. As nothing of that changes while the task lives, change_mode never comes to pass.
type templates struct{ settings Settings }

func (templates) Name() string { return "template" }

// Once is false: each start renders again, as a result with env = true is not kept with the task.
func (templates) Once() bool { return false }

// Prestart renders the templates in the order of the job. A later one sees the environment that an earlier one with env
// = true added.
func (h templates) Prestart(ctx context.Context, r *Request) error {
	if len(r.Task.Templates) > 0 && h.settings.Evaluator == nil {
		return drover.Errorf(drover.Internal, "this node has nothing that renders templates")
	}
	for i, t := range r.Task.Templates {
		if err := h.render(ctx, r, t); err != nil {
			return &Failure{Err: fmt.Errorf("template %d (%s): %w", i, t.DestPath, err)}
		}
	}
	return nil
}

// render evaluates one template and writes its result. Evaluation happens in a process that may use only little time and
// memory, because the text is the job author's. Nothing is written if any step before fails.
func (h templates) render(ctx context.Context, r *Request, t *drover.Template) error {
	source, err := templateSource(r, t)
	if err != nil {
		return err
	}
	perms, err := parsePerms(t.Perms)
	if err != nil {
		return err
	}
	request := rendering.Request{Source: source, Left: t.LeftDelim, Right: t.RightDelim, Strict: t.ErrMissingKey, Env: r.Env.Vars()}
	result, err := h.settings.Evaluator.Evaluate(ctx, rendering.Name, request.Pack())
	if err != nil {
		return err
	}
	root, rel, err := r.place(t.DestPath)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := writeFile(root, rel, result, perms); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if t.Uid != nil || t.Gid != nil {
		if err := root.Lchown(rel, optional.Or(t.Uid, -1), optional.Or(t.Gid, -1)); err != nil {
			return fmt.Errorf("changing the owner: %w", err)
		}
	}
	if t.Envvars {
		vars, err := parseEnvFile(string(result))
		if err != nil {
			return err
		}
		r.Env = r.Env.With(vars)
	}
	return nil
}

// templateSource returns the template's text: the embedded one, or that of a regular file in the allocation's folder, of
// at most rendering.Max bytes. Errors: Invalid, TooLarge.
func templateSource(r *Request, t *drover.Template) (string, error) {
	if t.SourcePath == "" {
		return t.EmbeddedTmpl, nil
	}
	root, rel, err := r.place(t.SourcePath)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0) // a task may have put a fifo there
	if err != nil {
		return "", fmt.Errorf("opening the source: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", drover.Errorf(drover.Invalid, "the source %q is not a regular file", t.SourcePath)
	}
	data, err := io.ReadAll(io.LimitReader(f, rendering.Max+1))
	if err == nil && len(data) > rendering.Max {
		err = drover.Errorf(drover.TooLarge, "the source has more than %d bytes", rendering.Max)
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
