package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// longestFile is how many lines a file of Go may have that is neither a test nor generated.
const longestFile = 450

// TestFilesAreShort: what has grown beyond is several things, and each gets a file of its own.
func TestFilesAreShort(t *testing.T) {
	r := newTree(t)
	seen := 0
	r.each(t, ".go", func(rel, text string) {
		if strings.HasSuffix(rel, "_test.go") || strings.Contains(text, "\n// Code generated ") {
			return
		}
		seen++
		require.LessOrEqual(t, strings.Count(text, "\n"), longestFile, rel)
	})
	require.Positive(t, seen)
}

// largestPackage is how many lines a package may have, without tests and what is generated. Comments count.
const largestPackage = 3500

// largestRoot is how many lines the composition root may have: it joins what other packages do.
const largestRoot = 2000

// TestPackagesAreBounded: what has grown beyond is several nouns, and one of them gets a package of its own.
func TestPackagesAreBounded(t *testing.T) {
	r, lines := newTree(t), map[string]int{}
	r.each(t, ".go", func(rel, text string) {
		if !strings.HasSuffix(rel, "_test.go") && !strings.Contains(text, "\n// Code generated ") {
			lines[path.Dir(rel)] += strings.Count(text, "\n")
		}
	})
	require.NotEmpty(t, lines)
	require.Contains(t, lines, "internal/server")
	for folder, n := range lines {
		bound := largestPackage
		if folder == "internal/server" {
			bound = largestRoot
		}
		if n > bound {
			t.Errorf("%s has %d lines without tests, more than %d: give a noun of it a package of its own", folder, n, bound)
		}
	}
}

const (
	// longestFunction is how many lines a function may have, from its signature to its last brace. Comments count here; funlen leaves them
	// out.
	longestFunction = 80
	// widestInterface is how many methods an interface may declare. What it embeds is another interface's.
	widestInterface = 9
)

// TestFunctionsAreShort: what has grown beyond does several things, and each gets a name.
func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()
	eachDeclaration(t, func(at token.Position, lines int, n ast.Node) {
		if f, ok := n.(*ast.FuncDecl); ok && lines > longestFunction {
			t.Errorf("%s: %s has %d lines, more than %d: give a step of it a function of its own", at, f.Name.Name, lines, longestFunction)
		}
	})
}

// TestInterfacesAreNarrow: who consumes a wider one depends on more than anybody wants to fake. It is several groups of methods, and each
// gets a name.
func TestInterfacesAreNarrow(t *testing.T) {
	t.Parallel()
	eachDeclaration(t, func(at token.Position, _ int, n ast.Node) {
		if i, ok := n.(*ast.InterfaceType); ok && methods(i) > widestInterface {
			t.Errorf("%s: an interface of %d methods, more than %d: name its groups, and embed them", at, methods(i), widestInterface)
		}
	})
}

func methods(i *ast.InterfaceType) (n int) {
	for _, m := range i.Methods.List {
		n += len(m.Names) // none of what is embedded
	}
	return n
}

// eachDeclaration visits the functions and the interfaces of the house, but for tests and what is generated.
func eachDeclaration(t *testing.T, visit func(at token.Position, lines int, n ast.Node)) {
	t.Helper()
	seen := 0
	newTree(t).each(t, ".go", func(rel, text string) {
		if strings.HasSuffix(rel, "_test.go") || strings.Contains(text, "\n// Code generated ") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, rel, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.FuncDecl, *ast.InterfaceType:
				seen++
				at := files.Position(n.Pos())
				visit(at, files.Position(n.End()).Line-at.Line+1, n)
			}
			return true
		})
	})
	require.Positive(t, seen)
}

const (
	leastTried    = 55 // lines of tests to a hundred of code
	leastComments = 10 // lines with a comment in a hundred that are not empty
)

// TestTheTreeIsTriedAndExplained: code does not outgrow its tests, nor what says why it is as it is.
func TestTheTreeIsTriedAndExplained(t *testing.T) {
	code, tests, written, explained := 0, 0, 0, 0
	newTree(t).each(t, ".go", func(rel, text string) {
		lines := strings.Count(text, "\n")
		switch {
		case strings.HasSuffix(rel, "_test.go"):
			tests += lines
			return
		case strings.Contains(text, "\n// Code generated "):
			return
		}
		code += lines
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			written++
			if strings.HasPrefix(line, "//") || strings.Contains(line, " // ") {
				explained++
			}
		}
	})
	require.GreaterOrEqual(t, 100*tests, leastTried*code, "%d lines of tests to %d of code", tests, code)
	require.GreaterOrEqual(t, 100*explained, leastComments*written, "%d of %d lines have a comment", explained, written)
}
