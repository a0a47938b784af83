package cli

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// What the guides say is typed as it stands there. Each command of theirs is one that there is, with flags and as many words as it takes.
func TestTheGuidesSayCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	pages, commands := []string{"../../README.md"}, 0
	require.NoError(t, filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	}))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range shellLines(string(text)) {
			for _, words := range droverWords(line) {
				commands++
				if problem := understood(words); problem != nil {
					t.Errorf("%s: drover %s: %v", page, strings.Join(words, " "), problem)
				}
			}
		}
	}
	require.Greater(t, commands, 300, "the guides have commands")
}

// What the test above looks for it finds.
func TestCommandsThatThereAreNot(t *testing.T) {
	t.Parallel()
	page := "```sh\nA=$(drover nothing x) sudo drover job run -nothing a.hcl 2>&1 | drover job stop # drover none\n" +
		"cat <<END\ndrover none\nEND\ndrover job status \\\n  a && drover server frobnicate; echo 'drover none' >drover\n```\ndrover none\n"
	var all [][]string
	for _, line := range shellLines(page) {
		all = append(all, droverWords(line)...)
	}
	require.Equal(t, [][]string{
		{"nothing", "x"},
		{"job", "run", "-nothing", "a.hcl"},
		{"job", "stop"},
		{"job", "status", "a"},
		{"server", "frobnicate"},
	}, all)
	for i, words := range all {
		require.Equal(t, i == 3, understood(words) == nil, words)
	}
}

// understood reports what is wrong with the words of a command; nothing is run.
func understood(args []string) error {
	app := &term.App{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }, Clock: clock.Wall{}}
	root := NewRoot(app, Parts{})
	if len(args) > 0 && slices.Contains([]string{"bench", "completion"}, args[0]) { // they are added where the program is made
		return nil
	}
	c, rest, err := root.Find(doubleDashes(root, args))
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		if strings.Contains(err.Error(), "help requested") {
			return nil
		}
		return err
	}
	if c.HasSubCommands() && c.Flags().NArg() > 0 {
		return fmt.Errorf("%s has no command of that name", c.CommandPath())
	}
	return c.ValidateArgs(c.Flags().Args())
}

// shellLines are the lines of the page's blocks of shell, with what follows a backslash, and without documents that are written there.
func shellLines(page string) (lines []string) {
	shell, end, rest := false, "", ""
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			shell, end, rest = line == "```sh" || line == "```bash" || line == "```console", "", ""
			continue
		case !shell:
			continue
		case end != "":
			if line == end {
				end = ""
			}
			continue
		}
		line = rest + line
		if text, more := strings.CutSuffix(line, "\\"); more {
			rest = text
			continue
		}
		rest = ""
		if _, mark, here := strings.Cut(line, "<<"); here {
			end = strings.Trim(strings.Fields(mark)[0], `-'"`)
		}
		lines = append(lines, line)
	}
	return lines
}

// droverWords are the words behind each "drover" of a line, up to what is the shell's.
func droverWords(line string) (all [][]string) {
	for {
		before, inner, found := strings.Cut(line, "$(drover ")
		if !found {
			break
		}
		inner, after, _ := strings.Cut(inner, ")")
		all = append(all, droverWords("drover "+inner)...)
		line = before + "VALUE" + after
	}
	var words []string
	ours := false
	flush := func() {
		if ours {
			all = append(all, words)
		}
		words, ours = nil, false
	}
	for _, word := range shellWords(line) {
		switch {
		case slices.Contains([]string{"|", "||", "&&", ";", "&"}, word):
			flush()
		case ours:
			words = append(words, word)
		case word == "drover" && (len(words) == 0 || strings.Contains(words[len(words)-1], "=") || words[len(words)-1] == "sudo"):
			ours, words = true, nil
		default:
			words = append(words, word)
		}
	}
	flush()
	return all
}

// shellWords splits a line into words and operators, without comments and redirections.
func shellWords(line string) (words []string) {
	l := &lexer{}
	for _, r := range line {
		if r == '#' && l.quote == 0 && !l.begun {
			break
		}
		l.next(r)
	}
	l.end()
	return l.words
}

// lexer is a line of shell, as far as it was read.
type lexer struct {
	words       []string
	word        strings.Builder
	quote       rune // 0: none
	begun, skip bool // there is a word; it is a redirection's
}

// end ends the word.
func (l *lexer) end() {
	if l.begun && !l.skip {
		l.words = append(l.words, l.word.String())
	}
	l.skip = l.skip && !l.begun
	l.word.Reset()
	l.begun = false
}

func (l *lexer) next(r rune) {
	switch {
	case l.quote != 0 && r == l.quote:
		l.quote = 0
	case l.quote != 0:
		l.word.WriteRune(r)
	case r == '\'' || r == '"':
		l.quote, l.begun = r, true
	case r == ' ' || r == '\t':
		l.end()
	case r == '>' || r == '<':
		if text := l.word.String(); text == "2" || text == "1" {
			l.word.Reset()
			l.begun = false
		}
		l.end()
		l.skip = true
	case strings.ContainsRune("|&;", r):
		l.operator(string(r))
	default:
		l.word.WriteRune(r)
		l.begun = true
	}
}

// operator is a word of its own; two of one are one.
func (l *lexer) operator(o string) {
	if last := len(l.words) - 1; !l.begun && last >= 0 && l.words[last] == o {
		l.words[last] += o
		return
	}
	l.end()
	l.words = append(l.words, o)
}
