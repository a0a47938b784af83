package traces

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// omission is what of the details differs on purpose, or by chance, in whatever history: STRICT=1 compares them without it.
type omission struct {
	section string
	line    *regexp.Regexp
	instead string // "": the line is not compared
	reason  string
}

var leftOut = []omission{
	{"evals", regexp.MustCompile(`^(-\S+ |child )?alloc-failure$`), "", "What has failed is looked at also if nothing is left " +
		"to try, as the job's status and what waits for room depend on it. Nomad looks only if there is something to try."},
	{"evals", regexp.MustCompile(`^(-\S+ |child )?(canceled )?(queued-allocs|deployment-watcher)$`), "", "An evaluation that was overtaken " +
		"is complete, or was never made. Nomad makes it and shows it as cancelled until it is collected."},
	{"evals", regexp.MustCompile(`^(-\S+ |child )?(canceled )?node-update$`), "", "How often a node changes depends on when it reports."},
	{"evals", regexp.MustCompile(`^(-\S+ |child )?(pending )?alloc-reschedule$`), "", "Whether an allocation is replaced at once or by an " +
		"evaluation that waits depends on whether its delay is over when it is looked at."},
	{"events", regexp.MustCompile(`,Alloc Unhealthy`), "", "It is told whenever an allocation was judged. Nomad's node does not tell it " +
		"if the server stops the allocation first."},
	{"events", regexp.MustCompile(`,Max Run Duration Exceeded`), "", "The reason for the end is told, too."},
	{"events", regexp.MustCompile(`,Killing(,Killing)+`), ",Killing", "It is told once."},
	{"events", regexp.MustCompile(`(: dead failed=\S+ restarts=[1-9]\d* )(Received,)?(Task Setup,)?`), "${1}", "Ten events are kept: one " +
		"less at the end is one more at the beginning."},
	{"why", regexp.MustCompile(`^(.* stop failed: ).*$`), "${1}", "Why what failed was replaced is told. Nomad has no text, or that " +
		"of a later version."},
	{"why", regexp.MustCompile(`(alloc ID )[0-9a-f-]{36}`), "${1}ALLOCATION", "Each run has ids of its own."},
}

// comparable are a section's lines without what is left out.
func comparable(section string, lines map[string]int) map[string]int {
	out := map[string]int{}
	for line, n := range lines {
		for _, d := range leftOut {
			if d.section != section || !d.line.MatchString(line) {
				continue
			}
			if line = d.line.ReplaceAllString(line, d.instead); line == "" {
				break
			}
		}
		if line != "" {
			out[line] = max(out[line], n)
		}
	}
	return out
}

func TestDetailsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, d := range leftOut {
		require.NotEmpty(t, d.reason)
	}
	require.Equal(t, map[string]int{"job-register": 2}, comparable("evals", map[string]int{
		"job-register": 2, "alloc-failure": 1, "canceled queued-allocs": 1, "-high deployment-watcher": 1, "child alloc-failure": 3,
	}))
	const ended = "g/t run/failed: dead failed=true restarts=0 Received,Started,Terminated"
	require.Equal(t, map[string]int{ended: 1}, comparable("events", map[string]int{ended: 1, ended + ",Alloc Unhealthy": 1}))
	const evicted = "evict complete: Preempted by alloc ID "
	require.Equal(t, map[string]int{" stop failed: ": 1, evicted + "ALLOCATION": 1}, comparable("why", map[string]int{
		" stop failed: ": 1, " stop failed: alloc was rescheduled because it failed": 1, evicted + "84501ee9-2dad-4264-b9a8-cc8ccfb9792d": 1,
	}))
}
