package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// module is the path of this module, and carriers are the packages that do what jobs say. Those that only check, store, copy,
// compare, warn of or show a job are not among them.
const module = "github.com/drover-project/drover"

var carriers = []string{
	".", "./constraint", "./device", "./network", "./service", "./volume", "./workload", // but for what they check and fill in: see judges
	"./internal/control/scheduler/...", "./internal/control/fsm", "./internal/control/intake", "./internal/control/trigger",
	"./internal/control/leader", "./internal/control/planner", "./internal/control/assignment", "./internal/control/identity",
	"./internal/control/volumes", "./internal/control/quotas", "./internal/control/insight", "./internal/lifecycle", "./internal/node/...",
	"./internal/registration", "./internal/taskenv", "./internal/servicecheck", "./internal/binding", "./internal/claims", "./internal/tenant",
	"./internal/exec/...", "./internal/cron", "./internal/httpapi/nomad/...", "./internal/server/...",
}

// nouns are the packages that have the types of a job.
var nouns = map[string]bool{
	module: true, module + "/constraint": true, module + "/device": true, module + "/network": true, module + "/service": true,
	module + "/volume": true, module + "/workload": true,
}

// heededOtherwise are fields that work although no carrier reads them by name, and how.
var heededOtherwise = map[string]string{
	"RestartPolicy.RenderTemplates": "each start of a task renders its templates",
	"TaskGroup.MaxClientDisconnect": "Canonicalize makes Disconnect.LostAfter of it",
	"LogConfig.Enabled":             "Canonicalize makes Disabled of it",
	"JobUIConfig.Description":       "the page shows it",
	"JobUILink.Label":               "the page shows it",
	"JobUILink.URL":                 "the page links to it",
	"VolumeRequest.Name":            "it is the key under which the request stands",
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// TestFieldsThatWorkAreRead: a field that nobody reads does nothing, whatever the table says.
func TestFieldsThatWorkAreRead(t *testing.T) {
	t.Parallel()
	read := fieldsRead(t)
	for of, path := range paths() {
		if _, ok := heededOtherwise[of]; !ok && !read[of] {
			t.Errorf("Job.%s (%s) is called working, and none of the packages that do what jobs say reads it: "+
				"carry it out, or add it to a table of unheeded.All", path, of)
		}
	}
	for of := range heededOtherwise {
		require.NotEmpty(t, paths()[of], "%s is no field that works", of)
		require.False(t, read[of], "%s is read: it needs no exception", of)
	}
}

// paths are the fields that the table calls working, by type and name.
func paths() map[string]string {
	out := map[string]string{}
	for _, f := range fieldsOfJob() {
		if f.fate != works {
			continue
		}
		of, name := reflect.TypeFor[drover.Job](), f.path
		for {
			first, rest, more := strings.Cut(name, ".")
			if !more {
				break
			}
			field, ok := of.FieldByName(first)
			if !ok || first == "Checks" { // a check is a map until package servicecheck reads it
				of = nil
				break
			}
			of, name = blockType(field.Type), rest
		}
		if of != nil {
			out[of.Name()+"."+name] = f.path
		}
	}
	return out
}

// fieldsRead lists the fields of structs of nouns that the carriers read, by type and name.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	root := filepath.Join("..", "..")
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, carriers...)
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Stderr = root, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0") // as the program is built, for the tests that run it
	out, err := c.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	read := map[string]bool{}
	for _, p := range packages {
		note(t, files, imports, p, read)
	}
	return read
}

// note adds the fields that a package reads.
func note(t *testing.T, files *token.FileSet, imports types.Importer, p listed, read map[string]bool) {
	t.Helper()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, f)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	_, err := (&types.Config{Importer: imports}).Check(p.ImportPath, files, parsed, info)
	require.NoError(t, err, p.ImportPath)
	set := written(parsed)
	if nouns[p.ImportPath] {
		judges(parsed, set)
	}
	for at, s := range info.Selections {
		named, ok := owner(s).(*types.Named)
		if ok && s.Kind() == types.FieldVal && !set[at] && named.Obj().Pkg() != nil && nouns[named.Obj().Pkg().Path()] {
			read[named.Obj().Name()+"."+at.Sel.Name] = true
		}
	}
}

// owner is the struct that has a selected field, which may be embedded in that which is named.
func owner(s *types.Selection) types.Type {
	of := s.Recv()
	for _, i := range append(s.Index()[:len(s.Index())-1:len(s.Index())-1], -1) {
		if pointer, ok := of.(*types.Pointer); ok {
			of = pointer.Elem()
		}
		if block, ok := of.Underlying().(*types.Struct); ok && i >= 0 {
			of = block.Field(i).Type()
		}
	}
	return of
}

// judges adds the selectors in functions that only check a job or fill it in.
func judges(files []*ast.File, set map[ast.Expr]bool) {
	for _, f := range files {
		for _, d := range f.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(strings.ToLower(function.Name.Name), "valid") &&
				!strings.HasPrefix(strings.ToLower(function.Name.Name), "canonical") {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				if at, ok := n.(*ast.SelectorExpr); ok {
					set[at] = true
				}
				return true
			})
		}
	}
}

// written are the selectors that are only given a value.
func written(files []*ast.File) map[ast.Expr]bool {
	set := map[ast.Expr]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
				for _, left := range a.Lhs {
					set[left] = true
				}
			}
			return true
		})
	}
	return set
}
