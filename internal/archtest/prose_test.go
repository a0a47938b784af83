package archtest

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// longestSentence is how many words a sentence of a document or of a comment may have; 30 is what one aims at. Names in code quotes do
// not count, nor does what docgen writes.
const longestSentence = 40

var (
	quoted       = regexp.MustCompile("`[^`]*`")
	target       = regexp.MustCompile(`\]\([^)]*\)`)
	fence        = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```$")
	preformatted = regexp.MustCompile(`(?m)^[\t ].*$`) // in a comment
	sentenceEnd  = regexp.MustCompile(`[.!?][")\]*_]*\s`)
	// itemStart begins a paragraph of its own: an item of a list, a heading, a row of a table.
	itemStart = regexp.MustCompile(`(?m)^\s*(?:[-*] |\d+\. |#|\|)`)
)

// TestSentencesAreShort: what is longer says several things, and its reader begins again in the middle.
func TestSentencesAreShort(t *testing.T) {
	t.Parallel()
	r := newTree(t)
	r.each(t, ".md", func(rel, text string) {
		if !strings.HasPrefix(rel, "docs/reference/") {
			tellLong(t, rel, strings.ReplaceAll(fence.ReplaceAllString(text, "\n\n"), " | ", "\n\n"))
		}
	})
	r.each(t, ".go", func(rel, text string) {
		if strings.Contains(text, "\n// Code generated ") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), rel, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range f.Comments {
			tellLong(t, rel, preformatted.ReplaceAllString(group.Text(), ""))
		}
	})
}

func tellLong(t *testing.T, where, text string) {
	t.Helper()
	for _, s := range longSentences(text) {
		t.Errorf("%s: a sentence of more than %d words: %s", where, longestSentence, s)
	}
}

func longSentences(text string) (found []string) {
	text = itemStart.ReplaceAllString(text, "\n\n")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		words := target.ReplaceAllString(quoted.ReplaceAllString(paragraph, ""), "]")
		words = sentenceEnd.ReplaceAllString(words, "$0\x00")
		for s := range strings.SplitSeq(words, "\x00") {
			if list := strings.Fields(s); len(list) > longestSentence {
				found = append(found, strings.Join(list, " "))
			}
		}
	}
	return found
}

// TestLongSentencesAreFound shows that the rule bites.
func TestLongSentencesAreFound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", longestSentence) + "and"
	for _, text := range []string{long, "First. " + long, "First (so).\n" + long, "- first\n- " + long, "| a |\n| " + long + " |"} {
		require.Len(t, longSentences(text), 1, text)
	}
	half := strings.Repeat("word ", longestSentence-1) + "ends."
	names := strings.Repeat("`a b` ", longestSentence)
	for _, text := range []string{half + " " + half, half + "\n\n" + half, "- " + half + "\n- " + half, names + half} {
		require.Empty(t, longSentences(text), text)
	}
}
