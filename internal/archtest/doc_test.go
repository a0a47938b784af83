package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	aboutGoroutines = regexp.MustCompile(`(?i)\bgoroutines?\b`)
	noGoroutines    = regexp.MustCompile(`(?i)\b(?:starts|owns|has)(?: it)? no goroutines?(?:[.:;,]| and)`)
)

// TestEveryPackageSaysWhoOwnsItsGoroutines: each doc.go has a word about them, and what says that it starts none starts none.
func TestEveryPackageSaysWhoOwnsItsGoroutines(t *testing.T) {
	t.Parallel()
	docs, starts := map[string]string{}, map[string]string{}
	newTree(t).each(t, ".go", func(rel, text string) {
		if strings.HasSuffix(rel, "_test.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, rel, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		if path.Base(rel) == "doc.go" {
			docs[path.Dir(rel)] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
		if at := startsGoroutine(f); at.IsValid() {
			starts[path.Dir(rel)] = files.Position(at).String()
		}
	})
	require.NotEmpty(t, docs)
	for folder, text := range docs {
		if !aboutGoroutines.MatchString(text) {
			t.Errorf("%s/doc.go does not say who owns the package's goroutines", folder)
		}
		if said := noGoroutines.FindString(text); said != "" && starts[folder] != "" {
			t.Errorf("%s/doc.go says that it %s, and %s starts one", folder, strings.TrimSpace(said), starts[folder])
		}
	}
}

// startsGoroutine is where the file has a go statement, or gives a function to the Go of a group; the zero Pos without one.
func startsGoroutine(f *ast.File) (at token.Pos) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			at = n.Pos()
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" && len(n.Args) == 1 {
				at = n.Pos()
			}
		}
		return !at.IsValid()
	})
	return at
}

// TestGoroutinesAreFound shows that the rule bites.
func TestGoroutinesAreFound(t *testing.T) {
	t.Parallel()
	for body, starts := range map[string]bool{
		`func f() { go f() }`: true,
		`func f() { func() { defer func() { go f() }() }() }`:             true,
		`import "sync"; func f() { var w sync.WaitGroup; w.Go(func(){})}`: true,
		`func f() { f() }`: false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p;"+body, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.Equal(t, starts, startsGoroutine(f).IsValid(), body)
	}
	for _, text := range []string{"It starts no goroutines.", "It has no goroutine: it is data.", "Nor has it no goroutines and"} {
		require.Regexp(t, noGoroutines, text)
	}
	for _, text := range []string{
		"It starts no goroutines but those of f.", "It starts no goroutines of its own.", "Run owns the goroutines.",
	} {
		require.NotRegexp(t, noGoroutines, text)
	}
}
