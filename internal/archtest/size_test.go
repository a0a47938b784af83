package archtest

import (
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
