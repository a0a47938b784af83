package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesEscapeTheirCells(t *testing.T) {
	t.Parallel()
	rows := newTable("Key", "Meaning")
	rows.row(code("a|b"), " one\ntwo | <three> ")
	require.True(t, strings.HasPrefix(rows.String(), "| Key | Meaning |\n|---|---|\n"))
	for _, line := range strings.Split(strings.TrimSpace(rows.String()), "\n") {
		bars := strings.Count(line, "|") - strings.Count(line, `\|`)
		require.Equal(t, 3, bars, "each line has two cells: %s", line)
	}
	require.Contains(t, rows.String(), `| one two \| &lt;three> |`)
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "  ": "", "a key": "A key.", "Done!": "Done!", "why? ": "Why?", "`x` is code": "`x` is code.", "ÖPNV": "ÖPNV.",
	} {
		require.Equal(t, want, sentence(in))
	}
	require.Empty(t, code(""), "nothing stays nothing")
	require.Equal(t, "`x`", code("x"))
}

func TestCommentsAreSplitByTheirWords(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string][3]string{
		"":                               {"", "", ""},
		"folder of the log; path":        {"folder of the log", "path", ""},
		"rate; per second; default 200":  {"rate", "per second", "200"},
		"a; b; c; MB":                    {"a; b; c", "MB", ""},
		"on; default: true with -dev.":   {"on", "", "true with -dev"},
		"defaults are elsewhere":         {"defaults are elsewhere", "", ""},
		"x; duration; default 10s; more": {"x; more", "duration", "10s"},
	} {
		meaning, unit, standard := described(comment)
		require.Equal(t, want, [3]string{meaning, unit, standard}, "%q", comment)
	}
}

// A page is written from what the source says: comments of types and fields, blocks of constants, tables of texts.
func TestSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(`package a

// Block is what a user
// writes.
//
// More of it.
type Block struct {
	// how many; default 3
	Count int
	Name, Other string // both; path
	Plain bool
}

// Kind is a set.
type Kind int

const (
	First Kind = iota // the first
	Second // the second
)

const other = 1 // of no kind
`), 0o600))
	another := []byte("package a\n\n// Block is another.\ntype Block struct{}\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), another, 0o600))
	s, err := parseSource(dir)
	require.NoError(t, err)
	require.Equal(t, "Block is what a user writes.", s.typeComment("Block"), "the first paragraph, and not the test's")
	require.Empty(t, s.typeComment("Nothing"))
	require.Equal(t, map[string]string{"Count": "how many; default 3", "Name": "both; path", "Other": "both; path", "Plain": ""},
		s.fieldComments("Block"))
	require.Empty(t, s.fieldComments("Kind"), "it has no fields")
	require.Equal(t, []string{"the first", "the second"}, s.constantComments("Kind"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.go"), []byte("package a\n\nfunc {"), 0o600))
	_, err = parseSource(dir)
	require.ErrorContains(t, err, "b.go")
	none, err := parseSource(filepath.Join(dir, "absent"))
	require.NoError(t, err)
	require.Empty(t, none.files)
}

// Pages are written into the folder of the references, which is made.
func TestPagesAreWritten(t *testing.T) {
	t.Parallel()
	all, err := pages(root)
	require.NoError(t, err)
	require.Len(t, all, 6)
	for path, text := range all {
		require.True(t, strings.HasPrefix(text, notice), "%s begins with who wrote it", path)
		require.Contains(t, text, "\n# ", "%s has a title", path)
		require.True(t, strings.HasSuffix(text, "\n"), path)
		require.NotContains(t, text, "%!", "%s: a format and its values do not fit", path)
	}
	require.ErrorContains(t, run(t.TempDir()), "writing ", "there is no source")
}
