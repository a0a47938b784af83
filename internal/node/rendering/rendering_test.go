package rendering

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/evaluator"
)

func TestMain(m *testing.M) {
	evaluator.Child(map[string]evaluator.Func{
		Name: Func,
		// What the bounds of this package let pass, evaluation has to contain.
		"unbounded": func(r []byte) ([]byte, error) {
			text := string(r)
			for {
				text = fmt.Sprintf("%s%s", text, text)
			}
		},
	})
	goleak.VerifyTestMain(m)
}

func TestRender(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "x", "EMPTY": "", "RAW": "\xff<&>"}
	for source, want := range map[string]string{
		`{{ env "A" | toUpper }}{{ env "NOPE" }}{{ envOrDefault "EMPTY" "d" }}{{ mustEnv "A" }}`: "Xx",
		`{{ printf "%s=%05d|%-4s|%%" "a" 7 "b" }}`:                                               "a=00007|b   |%",
		`{{ print 1 "a" 2 }}{{ println "x" }}`:                                                   "1a2x\n",
		`{{ html "<" }}{{ js "'" }}{{ urlquery "a b" }}`:                                         "&lt;\\'a+b",
		`{{ join "-" (split "," "a,b") }} {{ replaceAll "a" "bb" "aca" }}`:                       "a-b bbcbb",
		`{{ env "RAW" }}`: "\xff<&>",
		`{{ range $i := split "" "abc" }}{{ $i }}.{{ end }}{{ add 1 2 }}{{ parseInt "7" }}`: "a.b.c.37",
	} {
		packed, err := Func(Request{Source: source, Env: env}.Pack())
		require.NoError(t, err, source)
		got, err := Unpack(packed)
		require.NoError(t, err)
		require.Equal(t, want, string(got.Text), source)
	}
	got, err := Render(Request{Source: `<<env "A">>`, Left: "<<", Right: ">>", Env: env})
	require.NoError(t, err)
	require.Equal(t, "x", string(got.Text))
	_, err = Render(Request{Source: `{{ (index . "a") }}`, Strict: true})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// doubling is the template of 200 bytes that took all of a machine's memory.
const doubling = `{{ $a := "aaaaaaaaaaaaaaaa" }}{{ range $i := (split "" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") }}` +
	`{{ $a = printf "%s%s" $a $a }}{{ end }}{{ $a }}`

// greedy are templates that ask for more than there is, and what tells them so.
func greedy() map[string]string {
	grow := func(step string) string {
		return `{{ $a := "aaaaaaaaaaaaaaaa" }}{{ range 60 }}{{ $a = ` + step + ` }}{{ end }}{{ $a }}`
	}
	texts := "it makes texts of more than"
	return map[string]string{
		doubling:                          texts,
		grow(`print $a $a`):               texts,
		grow(`println $a $a`):             texts,
		grow(`printf "%s%[1]s" $a`):       texts,
		grow(`join $a (split "" $a)`):     texts,
		grow(`replaceAll "a" "aaaa" $a`):  texts,
		grow(`html (printf "%s<" $a) $a`): texts,
		grow(`js $a $a`):                  texts,
		grow(`urlquery $a $a "&"`):        texts,
		grow(`toUpper (print $a $a)`):     texts,
		`{{ printf "%999999d%999999d%999999d%999999d%999999d" 1 1 1 1 1 }}`:           texts,
		`{{ printf "%*d%*d%*d%*d%*d" 999999 1 999999 1 999999 1 999999 1 999999 1 }}`: texts,
		`{{ range 99 }}{{ $x := printf "%999999d" 1 }}{{ end }}`:                      texts,
		`{{ range 99999 }}{{ range 99999 }}x{{ end }}{{ end }}`:                       "go round more than 100000 times",
		`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`:               "", // the depth that text/template allows, or the stack
		`{{ range loop 0 999999999 }}x{{ end }}`:                                      "go round more than 100000 times",
		`{{ indent 9999999 "a" }}`:                                                    texts,
		`{{ sprig_repeat 999999999 "aaaaaaaa" }}`:                                     "",
		`{{ range loop 99999 }}{{ nomadVar (print .) }}{{ end }}`:                     "more than 1000 variables",
		`{{ range 99 }}{{ printf "%99999d" 1 }}{{ end }}`:                             "the result has more than",
		strings.Repeat("{{ if 1 }}", 400_000):                                         "",
		"{{" + strings.Repeat("(", 1_000_000):                                         "",
		"{{" + strings.Repeat("1|print|", 500_000) + "print}}":                        "",
	}
}

// Nothing that a template asks for is more than the evaluator's limits, and the evaluator serves the next one.
func TestGreedyTemplatesAreContained(t *testing.T) {
	t.Parallel()
	p := evaluator.New(evaluator.Config{
		What: "the template", Limits: evaluator.Limits{Memory: 128 << 20, CPU: 5 * time.Second, Wall: time.Minute, Answer: MaxResult},
		Workers: 2, Waiting: 100, Idle: time.Minute, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(p.Close)
	for source, says := range greedy() {
		_, err := p.Evaluate(t.Context(), Name, Request{Source: source}.Pack())
		require.ErrorContains(t, err, says, source[:min(len(source), 100)])
		require.NotEqual(t, drover.Internal, drover.CodeOf(err), "%v", err)
		packed, err := p.Evaluate(t.Context(), Name, Request{Source: `{{ env "A" }}`, Env: map[string]string{"A": "b"}}.Pack())
		require.NoError(t, err)
		got, err := Unpack(packed)
		require.NoError(t, err)
		require.Equal(t, "b", string(got.Text))
	}
	_, err := p.Evaluate(t.Context(), "unbounded", []byte("a"))
	require.EqualError(t, err, "the template needs more than 128 MB of memory to evaluate")
}

// The largest templates that there may be stay within the evaluator's limits.
func TestLargeTemplatesAreRendered(t *testing.T) {
	t.Parallel()
	p := evaluator.New(evaluator.Config{
		What: "the template", Limits: evaluator.Limits{Memory: 128 << 20, CPU: 20 * time.Second, Wall: time.Minute, Answer: MaxResult},
		Workers: 1, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(p.Close)
	for _, source := range []string{
		strings.Repeat("x", Max), strings.Repeat(`{{ env "A" }} and a few words more for each of them `, Max/60),
		strings.Repeat(`{{ env "A" }}`+"\n", 50_000),
	} {
		for range 3 {
			_, err := p.Evaluate(t.Context(), Name, Request{Source: source, Env: map[string]string{"A": "b"}}.Pack())
			require.NoError(t, err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	request := Request{
		Source: `listen {{ env "NOMAD_PORT_http" }}; {{ range split "," (env "HOSTS") }}server {{ . }};{{ end }}`,
		Env:    map[string]string{},
	}
	for i := range 40 {
		request.Env[fmt.Sprintf("NOMAD_META_KEY_%d", i)] = strings.Repeat("v", 40)
	}
	request.Env["HOSTS"] = "a:1,b:2,c:3"
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if _, err := Render(request); err != nil {
				b.Fatal(err)
			}
		}
	})
	p := evaluator.New(evaluator.Config{
		What: "the template", Limits: evaluator.Limits{Memory: 128 << 20, CPU: 5 * time.Second, Wall: time.Minute, Answer: MaxResult},
		Workers: 2, Waiting: 100, Idle: time.Minute, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	b.Cleanup(p.Close)
	b.Run("child", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Evaluate(b.Context(), Name, request.Pack()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
