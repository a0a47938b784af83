package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksInDocumentsLeadSomewhere follows all links to files of this tree, and to headings in them.
func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, m[1])
				continue
			}
			if heading != "" && !info.IsDir() && !headings(t, file)[heading] {
				t.Errorf("%s: %s has no heading %q", path, file, heading)
			}
		}
	}
}

// documents are all markdown files of the tree.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			paths = append(paths, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(paths), 10)
	return paths
}

// headings returns the anchors that a page's headings have where markdown is shown.
func headings(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	out := map[string]bool{}
	drop := regexp.MustCompile("[^a-z0-9 _-]")
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			out[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(rest), ""), " ", "-")] = true
		}
	}
	return out
}
