package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// walk is what a team that comes from Nomad does with one job: commands of Nomad's command line, and where they lead.
//
//	alone                                changes nodes or collects garbage: nothing else may run meanwhile
//	$ nomad job run -detach web.nomad.hcl    a command; the file is below
//	exit 1                               how it ends, unless with 0
//	says 0/1 healthy                     what it prints, a part of it
//	until live: 1 x v1 g run/running     waits for the moment at which this is so
//	end canary-good 2                    the job ends as in this step of this recording, and stays so
//	end by WHERE: why                    the job ends with the lines that follow, which stand WHERE
//	  job: 1 x service dead v0 stop=false stable=true
//
// Of an end by words only the sections are compared that it names, each as a whole. A line that begins with # is for people.
// In a command {job}, {child}, {index}, {deployment 1}, {alloc v0 g[0]} and {node 0} stand for what a person reads from the
// output of an earlier one.
type walk struct {
	name  string
	job   string // the job that its first file defines
	alone bool
	files map[string]string
	acts  []act
}

// act is one line of a walk: one of the three is set.
type act struct {
	line    int
	command *command
	until   *counted
	end     *end
}

type command struct {
	text string
	args []string
	exit int
	says []string
}

type counted struct {
	section, text string
	n             int
}

// end is where a walk is for good.
type end struct {
	ways   []step // as recorded: any of them
	source string // of an end by words
	step   step
}

var (
	recordedEnd = regexp.MustCompile(`^([a-z0-9-]+) (\d+)$`)
	wordEnd     = regexp.MustCompile(`^by (\S.*?): (\S.*)$`)
	jobName     = regexp.MustCompile(`(?m)^job "([^"]+)"`)
)

// within is how long what is told by words may take, which nobody has measured.
const within = 20 * time.Second

func readWalks(t *testing.T, all [][]scenario) []walk {
	t.Helper()
	recordings := map[string][]scenario{}
	for _, ways := range all {
		recordings[ways[0].name] = ways
	}
	paths, err := filepath.Glob(filepath.Join("testdata", "walks", "*.txt"))
	require.NoError(t, err)
	var out []walk
	jobs := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		w, err := parseWalk(strings.TrimSuffix(filepath.Base(path), ".txt"), text, recordings)
		require.NoError(t, err, path)
		for other := range jobs { // what begins so counts as the job's own
			require.False(t, w.job == other || strings.HasPrefix(w.job, other+"-") || strings.HasPrefix(other, w.job+"-"),
				"%s: the job's name is like %s", path, other)
		}
		jobs[w.job] = true
		out = append(out, w)
	}
	return out
}

func parseWalk(name string, text []byte, recordings map[string][]scenario) (walk, error) {
	w := walk{name: name, files: map[string]string{}}
	archive := txtar.Parse(text)
	for _, f := range archive.Files {
		w.files[f.Name] = string(f.Data)
		if m := jobName.FindStringSubmatch(w.files[f.Name]); w.job == "" && m != nil {
			w.job = m[1]
		}
	}
	if w.job == "" {
		return w, fmt.Errorf("no file of it has a job")
	}
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		if err := w.read(i+1, line, recordings); err != nil {
			return w, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if len(w.acts) == 0 || w.acts[len(w.acts)-1].end == nil {
		return w, fmt.Errorf("a walk leads to an end")
	}
	for _, a := range w.acts {
		if a.end != nil && len(a.end.ways) == 0 && len(a.end.step.want) == 0 {
			return w, fmt.Errorf("line %d: an end by words has lines", a.line)
		}
	}
	return w, nil
}

func (w *walk) read(number int, line string, recordings map[string][]scenario) error {
	word, rest, _ := strings.Cut(line, " ")
	var last act
	if len(w.acts) > 0 {
		last = w.acts[len(w.acts)-1]
	}
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
	case line == "alone":
		w.alone = true
	case word == "$":
		args, err := words(rest)
		if err != nil {
			return err
		}
		if len(args) < 2 || args[0] != "nomad" {
			return fmt.Errorf("not a command of Nomad: %q", rest)
		}
		w.acts = append(w.acts, act{line: number, command: &command{text: rest, args: args[1:]}})
	case word == "exit" && last.command != nil:
		var err error
		last.command.exit, err = strconv.Atoi(rest)
		return err
	case word == "says" && last.command != nil:
		last.command.says = append(last.command.says, rest)
	case word == "until":
		c, err := parseCounted(rest)
		w.acts = append(w.acts, act{line: number, until: &c})
		return err
	case word == "end":
		e, err := parseEnd(rest, recordings)
		w.acts = append(w.acts, act{line: number, end: &e})
		return err
	case strings.HasPrefix(line, "  ") && last.end != nil && len(last.end.ways) == 0:
		c, err := parseCounted(strings.TrimSpace(line))
		last.end.step.want.add(c.section, c.text, c.n)
		return err
	default:
		return fmt.Errorf("unknown line %q", line)
	}
	return nil
}

func parseEnd(text string, recordings map[string][]scenario) (end, error) {
	if m := wordEnd.FindStringSubmatch(text); m != nil {
		return end{source: m[1], step: step{title: m[2], within: within, quiet: 1, want: sections{}}}, nil
	}
	m := recordedEnd.FindStringSubmatch(text)
	if m == nil {
		return end{}, fmt.Errorf("not `RECORDING STEP` or `by WHERE: why`: %q", text)
	}
	n, _ := strconv.Atoi(m[2])
	e := end{source: "the recording " + m[1]}
	for _, s := range recordings[m[1]] {
		if n < 1 || n > len(s.steps) || s.steps[n-1].next > 0 {
			return end{}, fmt.Errorf("no end was recorded: %q", text)
		}
		e.ways = append(e.ways, s.steps[n-1])
	}
	if len(e.ways) == 0 {
		return end{}, fmt.Errorf("there is no recording %q", m[1])
	}
	return e, nil
}

func parseCounted(text string) (counted, error) {
	m := countedLine.FindStringSubmatch("  " + text)
	if m == nil || !known(m[1]) {
		return counted{}, fmt.Errorf("not `section: n x line`: %q", text)
	}
	n, _ := strconv.Atoi(m[2])
	return counted{section: m[1], text: m[3], n: n}, nil
}

// words splits a command as a shell does: single quotes keep blanks, as braces do.
func words(text string) ([]string, error) {
	var out []string
	var word strings.Builder
	begun, quoted, depth := false, false, 0
	for _, r := range text {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
			continue
		case quoted:
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ' ' && depth == 0:
			if begun {
				out = append(out, word.String())
				word.Reset()
			}
			begun = false
			continue
		}
		word.WriteRune(r)
		begun = true
	}
	if quoted || depth != 0 {
		return nil, fmt.Errorf("a quote or brace is not closed: %s", text)
	}
	if begun {
		out = append(out, word.String())
	}
	return out, nil
}
