package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cores are the files of values that decide inside packages that also have loops. They are held to the rules of the
// deciders, which TestDecidersArePure holds whole packages to.
var cores = []string{"internal/exec/runner/core*.go"}

// coreMayImport lists what a core needs of the standard library. Of the house it may import data and deciders: layers 0 and 3,
// environment (translation of data), invariant and minheap.
var coreMayImport = []string{"cmp", "errors", "fmt", "iter", "maps", "reflect", "slices", "strconv", "strings", "time"}

// clockReaders are functions of package time that ask the wall clock or wait for it.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestCoresArePure(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, pattern := range cores {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, "%s: where did the core go?", pattern)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, what := range impure(t, file, nil) {
				t.Errorf("%s: %s: a core is a value; the loop around it owns goroutines, locks, contexts, clocks and I/O", file, what)
			}
		}
	}
}

// TestImpureFindsWhatCoresMustNotDo shows that the rule bites.
func TestImpureFindsWhatCoresMustNotDo(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"imports os":                          `import "os"; var _ = os.Args`,
		"imports sync":                        `import "sync"; var _ sync.Mutex`,
		"imports context":                     `import "context"; var _ context.Context`,
		"imports drover/internal/clock":       `import _ "` + module(t) + `/internal/clock"`,
		"imports drover/internal/exec/runner": `import _ "` + module(t) + `/internal/exec/runner"`,
		"asks the clock: time.Now":            `import "time"; var _ = time.Now()`,
		"starts a goroutine":                  `func f() { go f() }`,
		"has a channel":                       `var c chan int`,
		"selects":                             `func f() { select {} }`,
	} {
		require.Contains(t, impure(t, "core.go", "package p;"+body), name)
	}
	require.Empty(t, impure(t, "core.go", `package p; import ("time"; "`+module(t)+`"); var _ time.Time; var _ drover.Job`))
}

// impure lists what the file does that a core must not. src is its text, nil to read it.
func impure(t *testing.T, file string, src any) (found []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		path = short(t, path)
		data := layerOf(path) == 0 || layerOf(path) == 3 || path == "drover/internal/invariant" || path == "drover/internal/minheap" ||
			path == "drover/internal/exec/environment"
		if !data && !permitted(path, coreMayImport, true) {
			found = append(found, "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "starts a goroutine")
		case *ast.ChanType:
			found = append(found, "has a channel")
		case *ast.SelectStmt:
			found = append(found, "selects")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && permitted(n.Sel.Name, clockReaders, true) {
				found = append(found, "asks the clock: time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}
