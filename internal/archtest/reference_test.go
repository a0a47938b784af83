package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree is what lies in the repository, under slash-separated paths from its top.
type tree struct {
	top   string
	files map[string]bool // and folders
	tails map[string]bool // what a path may end with: "agent/pull.go" is enough to find a file
}

func newTree(t *testing.T) *tree {
	t.Helper()
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	out := &tree{top, map[string]bool{}, map[string]bool{}}
	require.NoError(t, filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		if d.IsDir() && (rel == ".git" || rel == "bin") {
			return filepath.SkipDir
		}
		rel = filepath.ToSlash(rel)
		out.files[rel] = true
		for tail := rel; tail != ""; _, tail, _ = strings.Cut(tail, "/") {
			out.tails[tail] = true
		}
		return nil
	}))
	require.Contains(t, out.files, "go.mod")
	return out
}

func (r *tree) each(t *testing.T, suffix string, visit func(rel, text string)) {
	t.Helper()
	for rel := range r.files {
		if !strings.HasSuffix(rel, suffix) || strings.Contains(rel, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.top, rel))
		require.NoError(t, err)
		visit(rel, string(text))
	}
}

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A file of ours that a text names: not the end of an address, nor an absolute path.
	named = regexp.MustCompile("(?:^|[\\s(`\"'])([\\w][\\w./-]*\\.(?:go|md))\\b")
	// What a reader of the repository alone cannot find.
	elsewhere = regexp.MustCompile(`DESIGN(?:\.md)? section|\b[Tt]he charter\b|\bshared/`)
)

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.each(t, ".md", func(rel, text string) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue
			}
			if !r.files[path.Join(path.Dir(rel), target)] {
				t.Errorf("%s: the link to %s leads nowhere", rel, target)
			}
		}
		r.check(t, rel, text)
	})
}

func TestFilesThatCommentsNameExist(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.each(t, ".go", func(rel, text string) {
		f, err := parser.ParseFile(token.NewFileSet(), rel, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range f.Comments {
			r.check(t, rel, group.Text())
		}
	})
}

// check looks for files that a text names by a path or by their name alone.
func (r *tree) check(t *testing.T, where, text string) {
	t.Helper()
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		file := strings.TrimPrefix(m[1], "./")
		if !r.tails[file] && !r.files[path.Join(path.Dir(where), file)] {
			t.Errorf("%s names %s, which is not in the repository", where, file)
		}
	}
	for _, m := range elsewhere.FindAllString(text, -1) {
		t.Errorf("%s refers to %q, which is not in the repository", where, m)
	}
}
