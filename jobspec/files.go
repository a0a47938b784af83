package jobspec

import (
	"errors"
	"path/filepath"

	"github.com/hashicorp/go-cty-funcs/filesystem"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

var errNoFiles = errors.New("files can't be read here: only the command line reads them")

// fileFunctions look at the file system, from dir on; without dir they refuse. Those that only look at the text of a path
// always work.
func fileFunctions(dir string) map[string]function.Function {
	f := map[string]function.Function{
		"abspath":    absPath(dir),
		"pathexpand": filesystem.PathExpandFunc,
		"file":       filesystem.MakeFileFunc(dir, false),
		"filebase64": filesystem.MakeFileFunc(dir, true),
		"fileexists": filesystem.MakeFileExistsFunc(dir),
		"fileset":    filesystem.MakeFileSetFunc(dir),
	}
	if dir == "" {
		for name := range f {
			f[name] = refusing
		}
	}
	f["basename"], f["dirname"] = filesystem.BasenameFunc, filesystem.DirnameFunc
	return f
}

// refusing takes any arguments.
var refusing = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "arguments", Type: cty.DynamicPseudoType},
	Type:     function.StaticReturnType(cty.DynamicPseudoType),
	Impl:     func([]cty.Value, cty.Type) (cty.Value, error) { return cty.DynamicVal, errNoFiles },
})

// absPath begins at the job file's folder, where the library's begins at the process's.
func absPath(dir string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			p := args[0].AsString()
			if !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			p, err := filepath.Abs(p)
			return cty.StringVal(filepath.ToSlash(p)), err
		},
	})
}
