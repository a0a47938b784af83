package texts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/evaluator"
	"github.com/drover-project/drover/internal/sharetest"
	"github.com/drover-project/drover/jobspec"
)

func TestMain(m *testing.M) {
	evaluator.Child(Funcs())
	os.Exit(m.Run())
}

func jobText(expr string) string {
	return "job \"x\" {\n  meta {\n    a = " + expr + "\n  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"d\"\n    }\n  }\n}\n"
}

func openTexts(t testing.TB, jobFiles evaluator.Limits) Evaluators {
	t.Helper()
	sharetest.Take(t) // children compute as long as their limits allow
	limits := DefaultLimits()
	limits.JobFiles = jobFiles
	e := Open(limits, clock.Wall{}, slog.New(slog.DiscardHandler))
	t.Cleanup(e.close)
	return e
}

// Job files that took all of an agent's memory, or one of its processors for ever, are refused with a reason, and the
// agent's own memory stays what it was.
func TestGreedyJobFilesAreContained(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits().JobFiles
	limits.CPU, limits.Wall = time.Second, time.Minute // else each takes five
	e := openTexts(t, limits)
	many := `join("", [for x in range(1000) : "a"])`
	ten := strings.TrimSuffix(strings.Repeat("*a${i},", 10), ",")
	laughs := `concat(["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"], [for i in range(8) : "a${i + 1}: &a${i + 1} [` + ten + `]"])`
	squared := `[for a in range(1000) : [for b in range(1000) : `
	for text, says := range map[string]string{
		`format("%-300000000s", "x")`: "the result would be too large",
		`replace(replace(replace("aaaa", "a", ` + many + `), "a", ` + many + `), "a", ` + many + `)`: "larger than",
		`regex_replace(` + many + `, "", format("%1000000s", ""))`:                                   "the result would be too large",
		`length(` + squared + `[for c in range(1000) : "${a}${b}${c}"]]])`:                           "the job file ",
		`length(yamldecode(join("\n", ` + laughs + `)))`:                                             "",
		`bcrypt("x", 31)`: "the cost is at most 12",
		`length([for i in range(1000) : bcrypt("x", 12)])`: "takes longer than 1s of processor time to evaluate",
		`length(` + squared + `"${` + many + `}"]])`:       "the job file ",
	} {
		_, err := e.ParseHCL(t.Context(), jobText(text), "", false)
		require.ErrorContains(t, err, says, text)
		require.NotEqual(t, drover.Internal, drover.CodeOf(err), text)
		got, err := e.ParseHCL(t.Context(), jobText(`"fine"`), "", false)
		require.NoError(t, err)
		require.Contains(t, string(got), `"fine"`)
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	var peak int
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Sscanf(after, "%d", &peak)
	require.NoError(t, err)
	require.Less(t, peak, 500<<10, "KB, of this process at most")
}

// What the child answers is what a call would give.
func TestJobFilesAreParsedInAChild(t *testing.T) {
	t.Parallel()
	e := openTexts(t, DefaultLimits().JobFiles)
	got, err := e.ParseHCL(t.Context(), jobText("var.a")+"variable \"a\" {}\n", `a = "given"`, true)
	require.NoError(t, err)
	var job drover.Job
	require.NoError(t, json.Unmarshal(got, &job))
	want, err := jobspec.Parse([]byte(jobText("var.a")+"variable \"a\" {}\n"), jobspec.Options{VarFile: `a = "given"`})
	require.NoError(t, err)
	want.Canonicalize()
	wanted, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(wanted), string(got))
	_, err = e.ParseHCL(t.Context(), "job", "", false)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "job.hcl:1")
}

// Who goes away takes the work along.
func TestLeftJobFilesAreNotParsed(t *testing.T) {
	t.Parallel()
	e := openTexts(t, DefaultLimits().JobFiles)
	ctx, cancel := context.WithCancel(t.Context())
	timer := clock.Wall{}.AfterFunc(200*time.Millisecond, cancel)
	defer timer.Stop()
	_, err := e.ParseHCL(ctx, jobText(`length([for i in range(1000) : bcrypt("x", 12)])`), "", false)
	require.ErrorIs(t, err, context.Canceled)
}

// The largest job files that are taken are parsed within the limits.
func TestLargeJobFilesAreParsed(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits().JobFiles
	limits.CPU, limits.Wall = time.Minute, 5*time.Minute // this is about memory; the race detector takes its time
	e := openTexts(t, limits)
	for name, text := range map[string]string{
		"groups": "job \"x\" {\n" + groups(6500) + "}\n",
		"a list": jobText("length([" + strings.Repeat("1,", 50_000) + "1])"),
	} {
		require.Less(t, len(text), 1<<20, name)
		_, err := e.ParseHCL(t.Context(), text, "", true)
		require.NoError(t, err, name)
	}
}

func groups(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  group \"g%d\" {\n    count = %d\n    task \"t\" {\n", i, i%7)
		b.WriteString("      driver = \"raw_exec\"\n      config {\n        command = \"true\"\n      }\n    }\n  }\n")
	}
	return b.String()
}

func BenchmarkParseJobFile(b *testing.B) {
	full := "job \"x\" {\n" + groups(3) + "}\n"
	e := openTexts(b, DefaultLimits().JobFiles)
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if _, err := parseJobFile(evaluator.Pack(full, "", "")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("child", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.ParseHCL(b.Context(), full, "", false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
