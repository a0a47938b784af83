package hook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"text/template"

	"drover"
)

const maxTemplate = 4 << 20 // bytes, source and result

// templates renders a task's templates. Sources are literals and files of the allocation; what they can ask is the
// task's environment. As nothing of that changes while the task lives, change_mode never comes to pass.
type templates struct{}

func (templates) Name() string { return "template" }
func (templates) Once() bool   { return false }

func (templates) Prestart(ctx context.Context, r *Request) error {
	for i, t := range r.Task.Templates {
		if err := render(ctx, r, t); err != nil {
			return &Failure{Err: fmt.Errorf("template %d (%s): %w", i, t.DestPath, err)}
		}
	}
	return nil
}

func render(ctx context.Context, r *Request, t *drover.Template) error {
	source, err := templateSource(r, t)
	if err != nil {
		return err
	}
	parsed := template.New("template").Delims(t.LeftDelim, t.RightDelim).Funcs(functions(r)).Funcs(template.FuncMap{tickName: ticker(ctx)})
	if t.ErrMissingKey {
		parsed = parsed.Option("missingkey=error")
	}
	if parsed, err = parsed.Parse(source); err != nil {
		return drover.Errorf(drover.Invalid, "parsing: %w", err)
	}
	if err := bound(parsed); err != nil {
		return drover.Errorf(drover.Internal, "bounding: %w", err)
	}
	out := &limited{left: maxTemplate}
	if err := parsed.Execute(out, nil); err != nil {
		return drover.Errorf(drover.Invalid, "rendering: %w", err)
	}
	perms, err := parsePerms(t.Perms)
	if err != nil {
		return err
	}
	root, rel, err := r.place(t.DestPath)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := writeFile(root, rel, out.Bytes(), perms); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if t.Uid != nil || t.Gid != nil {
		if err := root.Lchown(rel, valueOr(t.Uid, -1), valueOr(t.Gid, -1)); err != nil {
			return fmt.Errorf("changing the owner: %w", err)
		}
	}
	if t.Envvars {
		vars, err := parseEnvFile(out.String())
		if err != nil {
			return err
		}
		r.Env = r.Env.With(vars)
	}
	return nil
}

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
	data, err := io.ReadAll(io.LimitReader(f, maxTemplate+1))
	if err == nil && len(data) > maxTemplate {
		err = drover.Errorf(drover.TooLarge, "the source has more than %d bytes", maxTemplate)
	}
	return string(data), err
}

// functions are those of consul-template that need no other service.
func functions(r *Request) template.FuncMap {
	env := r.Env.Vars()
	unavailable := func(name string) func(...any) (string, error) {
		return func(...any) (string, error) {
			return "", drover.Errorf(drover.NotImplemented, "the template function %q needs a service that this node does not have", name)
		}
	}
	return template.FuncMap{
		"env": func(k string) string { return env[k] },
		"mustEnv": func(k string) (string, error) {
			v, ok := env[k]
			if !ok {
				return "", fmt.Errorf("the environment has no %s", k)
			}
			return v, nil
		},
		"envOrDefault": func(k, d string) string {
			if v, ok := env[k]; ok && v != "" {
				return v
			}
			return d
		},
		"keyOrDefault": func(_, d string) string { return d },
		"key":          unavailable("key"), "secret": unavailable("secret"), "service": unavailable("service"),
		"nomadVar": unavailable("nomadVar"), "nomadService": unavailable("nomadService"),
		"toUpper": strings.ToUpper, "toLower": strings.ToLower, "trimSpace": strings.TrimSpace,
		"split":      func(sep, s string) []string { return strings.Split(s, sep) },
		"join":       func(sep string, a []string) string { return strings.Join(a, sep) },
		"replaceAll": func(from, to, s string) string { return strings.ReplaceAll(s, from, to) },
		"contains":   func(sub, s string) bool { return strings.Contains(s, sub) },
		"parseInt":   func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
		"parseBool":  strconv.ParseBool,
		"add":        func(b, a int64) int64 { return a + b },
		"subtract":   func(b, a int64) int64 { return a - b },
	}
}

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

// limited is a buffer that refuses to grow over its limit.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, drover.Errorf(drover.TooLarge, "the result has more than %d bytes", maxTemplate)
	}
	return l.Buffer.Write(p)
}

func valueOr(p *int, d int) int {
	if p == nil {
		return d
	}
	return *p
}
