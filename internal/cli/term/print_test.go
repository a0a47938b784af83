package term

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestWhatAProgramReads(t *testing.T) {
	t.Parallel()
	value := map[string]any{"Name": "a<b>"}
	for name, c := range map[string]struct {
		o    Output
		want string
		done bool
		err  string
	}{
		"people":           {},
		"JSON":             {o: Output{JSON: true}, want: "{\n    \"Name\": \"a<b>\"\n}\n", done: true},
		"a template":       {o: Output{Template: "{{.Name}}"}, want: "a<b>\n", done: true},
		"its function":     {o: Output{Template: "{{json .}}"}, want: `{"Name":"a\u003cb\u003e"}` + "\n", done: true},
		"both":             {o: Output{JSON: true, Template: "x"}, done: true, err: "-json and -t cannot be given together"},
		"a wrong template": {o: Output{Template: "{{"}, done: true, err: "the template: "},
		"a wrong field":    {o: Output{Template: "{{.Name.Nope}}"}, done: true, err: "the template: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			done, err := c.o.Data(&b, value)
			require.Equal(t, c.done, done)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, drover.Invalid, drover.CodeOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, b.String())
		})
	}
	_, err := (&Output{Template: "{{json .}}"}).Data(&bytes.Buffer{}, func() {})
	require.ErrorContains(t, err, "unsupported type")
}

func TestIDsAreShortenedForPeople(t *testing.T) {
	t.Parallel()
	const id = "3f2a0000-0000-0000-0000-000000000000"
	require.Equal(t, "3f2a0000", (&Output{}).ID(id))
	require.Equal(t, id, (&Output{Verbose: true}).ID(id))
	require.Equal(t, "py-1", ShortID("py-1"), "only ours have blocks")
}

func TestNumbersAndTimes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1 node", Plural(1, "node"))
	require.Equal(t, "0 nodes", Plural(0, "node"))
	for d, want := range map[time.Duration]time.Duration{
		1234567 * time.Nanosecond: 1230 * time.Microsecond, 999 * time.Nanosecond: time.Microsecond,
		1234567 * time.Microsecond: 1235 * time.Millisecond,
	} {
		require.Equal(t, want, Round(d))
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", time.Minute: "1m0s", 3599 * time.Second: "59m59s", time.Hour: "1h0m", 24 * time.Hour: "1d0h",
	} {
		require.Equal(t, want, Span(d))
	}
	for n, want := range map[float64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 30: "1.0 GiB", 1 << 60: "1024.0 PiB"} {
		require.Equal(t, want, Bytes(n))
	}
	require.Empty(t, Ago(0))
	now := clock.Wall{}.Now()
	require.Equal(t, "0s ago", Ago(now.Add(time.Hour).UnixNano()), "clocks differ")
	require.Equal(t, "2h0m ago", Ago(now.Add(-2*time.Hour).UnixNano()))
	require.Empty(t, Stamp(time.Time{}))
	require.Empty(t, Stamp(time.Unix(0, 0)))
	require.Empty(t, StampNanos(0))
	at, err := time.Parse(time.RFC3339, StampNanos(1767225600_000000000))
	require.NoError(t, err)
	require.Equal(t, int64(1767225600), at.Unix())
	require.Equal(t, "a=1, b=2", Pairs(map[string]string{"b": "2", "a": "1"}))
	require.Empty(t, Pairs(nil))
	require.Equal(t, "yes no", YesNo(true)+" "+YesNo(false))
}

func TestFactsWithoutAValueAreLeftOut(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, Facts(&b, "Name", "web", "Parent", "", "Long name", "x\ny"))
	require.Equal(t, "Name      = web\nLong name = x y\n", b.String())
	b.Reset()
	Section(&b, "Events")
	require.Equal(t, "\nEvents\n", b.String())
}

// TestATableHasALineARow whatever is in its cells: what a guest wrote must not move our cursor, nor add a line.
func TestATableHasALineARow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.SliceOfN(rapid.String(), 2, 2), 1, 5).Draw(t, "cells")
		var b bytes.Buffer
		require.NoError(t, Table(&b, "none", "A|B", cells))
		text := b.String()
		require.Equal(t, len(cells)+1, strings.Count(text, "\n"))
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\r")
	})
	rapid.Check(t, func(t *rapid.T) {
		text := OneLine(rapid.String().Draw(t, "text"))
		require.NotContains(t, text, "\n")
		require.Equal(t, text, OneLine(text))
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAReaderThatLeavesIsTold(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Table(brokenPipe{}, "", "A", [][]string{{"a"}}), "broken pipe")
	require.ErrorContains(t, Table(brokenPipe{}, "none", "A", nil), "broken pipe")
	require.ErrorContains(t, Facts(brokenPipe{}, "A", "b"), "broken pipe")
	require.ErrorContains(t, PrintJSON(brokenPipe{}, 1), "broken pipe")
}

func TestKeyValues(t *testing.T) {
	t.Parallel()
	m, err := KeyValues("-env", []string{"A=b", "C=d=e", "F=", "A=g"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "g", "C": "d=e", "F": ""}, m)
	for _, bad := range []string{"A", "=b", ""} {
		_, err := KeyValues("-env", []string{bad})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), bad)
	}
}
