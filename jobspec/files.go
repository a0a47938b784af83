package jobspec

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// files are the functions that look at the file system, from dir on; without dir they refuse.
type files struct{ dir string }

var errNoFiles = errors.New("files can't be read here: only the command line reads them")

func (f files) functions() map[string]function.Function {
	return map[string]function.Function{
		"abspath":    f.path(func(p string) (string, error) { return filepath.Abs(f.at(p)) }),
		"basename":   text(func(p string) (string, error) { return filepath.Base(p), nil }),
		"dirname":    text(func(p string) (string, error) { return filepath.Dir(p), nil }),
		"pathexpand": f.path(expand),
		"file": f.path(func(p string) (string, error) {
			b, err := f.read(p)
			if err == nil && !utf8.Valid(b) {
				err = errors.New(p + ": is not UTF-8: use filebase64")
			}
			return string(b), err
		}),
		"filebase64": f.path(func(p string) (string, error) {
			b, err := f.read(p)
			return base64.StdEncoding.EncodeToString(b), err
		}),
		"fileexists": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "path", Type: cty.String}},
			Type:   function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				if f.dir == "" {
					return cty.DynamicVal, errNoFiles
				}
				info, err := os.Stat(f.at(args[0].AsString()))
				return cty.BoolVal(err == nil && info.Mode().IsRegular()), nil
			},
		}),
		"fileset": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "dir", Type: cty.String}, {Name: "pattern", Type: cty.String}},
			Type:   function.StaticReturnType(cty.Set(cty.String)),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				return f.set(args[0].AsString(), args[1].AsString())
			},
		}),
	}
}

func (f files) path(g func(string) (string, error)) function.Function {
	return text(func(p string) (string, error) {
		if f.dir == "" {
			return "", errNoFiles
		}
		return g(p)
	})
}

func (f files) at(p string) string {
	if e, err := expand(p); err == nil {
		p = e
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

func (f files) read(p string) ([]byte, error) { return os.ReadFile(f.at(p)) }

func (f files) set(dir, pattern string) (cty.Value, error) {
	if f.dir == "" {
		return cty.DynamicVal, errNoFiles
	}
	base := f.at(dir)
	found, err := filepath.Glob(filepath.Join(base, pattern))
	if err != nil {
		return cty.DynamicVal, err
	}
	var list []cty.Value
	for _, p := range found {
		if info, err := os.Stat(p); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if rel, err := filepath.Rel(base, p); err == nil {
			list = append(list, cty.StringVal(filepath.ToSlash(rel)))
		}
	}
	if len(list) == 0 {
		return cty.SetValEmpty(cty.String), nil
	}
	return cty.SetVal(list), nil
}

// expand replaces a leading ~ by the home folder.
func expand(p string) (string, error) {
	if p != "~" && (len(p) < 2 || p[:2] != "~/") {
		return p, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, p[1:]), err
}
