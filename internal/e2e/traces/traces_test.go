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
					r.play(s, c, l, 1)
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
	for attempt := 2; attempt <= attempts; attempt++ {
		doubts := r.doubts
		r.doubts = nil
		for _, d := range doubts {
			r.play(d.ways, d.cluster, l, attempt)
		}
	}
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

// attempts is how often a history is sent that differs while the machine is busy. Nomad's recording is one of wall-clock times: what is
// asked two seconds into a roll-out, or counted while tasks fail every few seconds, is another history where the machine was elsewhere
// meanwhile. Those are sent again, with no other beside them. What differs on a machine that had time fails at once.
const attempts = 3

// busy is the factor of load from which a history that differs proves nothing: half of its time the machine was elsewhere.
const busy = 2

// doubt is a history that differed while the machine was busy.
type doubt struct {
	ways    []scenario
	cluster *cluster
}

// results collects how the histories end.
type results struct {
	t  *testing.T
	mu sync.Mutex

	doubts  []doubt
	equal   []string
	differ  []string
	pending []string // known to differ
	mended  []string // known to differ, and equal now
}

func (r *results) play(ways []scenario, c *cluster, l *load, attempt int) {
	s, began := ways[0], time.Now()
	p := &replay{scenario: s, others: ways[1:], cluster: c, load: l, job: fmt.Sprintf("%s-%d", s.name, attempt), strict: *strict}
	report, err := p.run(context.WithoutCancel(r.t.Context()))
	if report != "" && err == nil && attempt < attempts && (p.late > delay || p.busiest >= busy) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.doubts = append(r.doubts, doubt{ways, c})
		r.t.Logf("to be sent again: %s (%s, load up to %.1f, a request %s late)\n%s",
			s.name, time.Since(began).Round(time.Second), p.busiest, p.late.Round(time.Millisecond), report)
		return
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
