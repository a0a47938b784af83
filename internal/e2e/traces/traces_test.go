package traces

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
)

var (
	chosen = flag.String("traces", "", "regular expression of the histories and walks to replay; empty: the representative ones")
	strict = flag.Bool("strict", false, "compare the details too")
	detail = flag.Bool("details", false, "tell how the details differ, of histories that are equal too")
	side   = flag.Int("side", 24, "how many histories run side by side")
)

// TestMain builds the program, and checks at the end that nothing of it is left on the machine.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(program.Main(m))
}

func TestTraces(t *testing.T) {
	t.Parallel()
	var shared, alone [][]scenario
	all := histories(t)
	var names []string
	for _, w := range readWalks(t, all) {
		names = append(names, w.name)
	}
	for _, s := range all {
		names = append(names, s[0].name)
		if !pickedOut(s[0].name, representative) {
			continue
		}
		if s[0].alone {
			alone = append(alone, s)
		} else {
			shared = append(shared, s)
		}
	}
	require.True(t, slices.ContainsFunc(names, regexp.MustCompile(*chosen).MatchString), "nothing is called %q", *chosen)
	l := &load{}
	go l.measure(t.Context()) // ends with the test
	r := &results{t: t}
	var running sync.WaitGroup
	play := func(name string, list [][]scenario, workers int) {
		if len(list) == 0 {
			return
		}
		longestFirst(list)
		c := startCluster(t, name)
		next := make(chan []scenario, len(list))
		for _, s := range list {
			next <- s
		}
		close(next)
		for range min(workers, len(list)) {
			running.Go(func() {
				for s := range next {
					r.play(s, c, l)
				}
			})
		}
	}
	play("shared", shared, *side)
	longestFirst(alone)
	var parts [3][][]scenario // a history that is alone has a cluster to itself
	for i, s := range alone {
		parts[i%len(parts)] = append(parts[i%len(parts)], s)
	}
	for i, part := range parts {
		play(fmt.Sprintf("alone-%d", i), part, 1)
	}
	running.Wait()
	r.sum()
}

// histories reads all transcripts, each with the ways in which it may go.
func histories(t *testing.T) [][]scenario {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	require.NoError(t, err)
	var out [][]scenario
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := parse(text)
		require.NoError(t, err, path)
		require.Equal(t, strings.TrimSuffix(filepath.Base(path), ".txt"), s.name)
		require.LessOrEqual(t, s.nodes, nodeCount, s.name)
		recorded := regexp.MustCompile(`\b` + regexp.QuoteMeta(s.name) + `-\d+\b`)
		for i := range s.steps {
			for j := range s.steps[i].requests {
				q := &s.steps[i].requests[j]
				q.text = recorded.ReplaceAllString(q.text, "JOB")
			}
		}
		all, err := outcomes(s)
		require.NoError(t, err)
		out = append(out, all)
	}
	return out
}

func pickedOut(name string, representative []string) bool {
	if *chosen == "" {
		return slices.Contains(representative, name) && pending[name] == ""
	}
	return regexp.MustCompile(*chosen).MatchString(name)
}

func longestFirst(list [][]scenario) {
	length := func(s []scenario) (d time.Duration) {
		for _, st := range s[0].steps {
			d += st.within + st.next
		}
		return d
	}
	slices.SortFunc(list, func(a, b []scenario) int { return int(length(b) - length(a)) })
}

// attempts is how often a history is sent. Where Nomad was asked while something was under way, two seconds into a roll-out, an answer
// that comes later says nothing: the machine was busy, and it is another history that was played.
const attempts = 3

// results collects how the histories end.
type results struct {
	t  *testing.T
	mu sync.Mutex

	equal   []string
	differ  []string
	pending []string // known to differ
	mended  []string // known to differ, and equal now
}

func (r *results) play(ways []scenario, c *cluster, l *load) {
	s, began := ways[0], time.Now()
	var p *replay
	var report string
	var err error
	for i := range attempts {
		p = &replay{scenario: s, others: ways[1:], cluster: c, load: l, job: fmt.Sprintf("%s-%d", s.name, i+1), strict: *strict}
		if report, err = p.run(context.WithoutCancel(r.t.Context())); report == "" || err != nil || p.late <= delay {
			break
		}
		report += fmt.Sprintf("  a request came %s late, %d times now\n", p.late.Round(time.Millisecond), i+1)
		r.t.Logf("%s was not replayed: a request came %s late", s.name, p.late.Round(time.Millisecond))
	}
	if err != nil {
		report += fmt.Sprintf("  %v\n", err)
	}
	if *detail && p.details.Len() > 0 {
		r.t.Logf("details of %s\n%s", s.name, p.details.String())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	why, known := pending[s.name]
	took := time.Since(began).Round(time.Second)
	switch {
	case report == "" && known:
		r.mended = append(r.mended, s.name)
		r.t.Logf("equal: %s (%s), which is still in pending_test.go: delete its row", s.name, took)
	case report == "":
		r.equal = append(r.equal, s.name)
		r.t.Logf("equal: %s (%s)", s.name, took)
	case known && err == nil:
		r.pending = append(r.pending, s.name)
		r.t.Logf("differs, as is known (%s): %s (%s, load %.1f)\n%s", why, s.name, took, l.factor(), report)
	default:
		r.differ = append(r.differ, s.name)
		r.t.Errorf("differs: %s (%s, load %.1f)\n%s", s.name, took, l.factor(), report)
	}
}

func (r *results) sum() {
	for _, list := range [][]string{r.equal, r.differ, r.pending, r.mended} {
		slices.Sort(list)
	}
	r.t.Logf("%d equal, %d differ %v, %d pending %v, %d of them equal by now %v",
		len(r.equal), len(r.differ), r.differ, len(r.pending), r.pending, len(r.mended), r.mended)
}
