package cron

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var sunday = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestTheNextTime(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"*/5 * * * *":       "2026-11-22T12:05:00Z",
		"0 8 * * mon-fri":   "2026-11-23T08:00:00Z",
		"@daily":            "2026-11-23T00:00:00Z",
		"30 0 12 * * * *":   "2026-11-22T12:00:30Z",
		"0 0 29 2 *":        "2028-02-29T00:00:00Z",
		"0 0 0 1 1 * 2030":  "2030-01-01T00:00:00Z",
		"0 0 31 2 *":        "0001-01-01T00:00:00Z", // never
		"* * * dec-feb *":   "0001-01-01T00:00:00Z", // the library panics
		"* * * 5-1 *":       "0001-01-01T00:00:00Z",
		"5-1 * * * *":       "0001-01-01T00:00:00Z",
		"0 0 1 1 * * 2001 ": "0001-01-01T00:00:00Z",
	} {
		l, err := Parse(line)
		require.NoError(t, err, line)
		require.Equal(t, want, l.Next(sunday).Format(time.RFC3339), line)
	}
	for _, line := range []string{"", "* * * *", "61 * * * *", "* * * * mo", "*/0 * * * *", "@sometimes"} {
		_, err := Parse(line)
		require.Error(t, err, line)
	}
}

// No line makes Next panic, or go back in time.
func TestNoLineIsDeadly(t *testing.T) {
	t.Parallel()
	field := rapid.StringMatching(`(\*|[0-9]{1,2}|[0-9]-[0-9]|[0-9]{1,2}/[0-9]|jan|dec-feb|fri-mon|L|5L|2W|1#3)`)
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for range rapid.IntRange(5, 7).Draw(t, "fields") {
			text += field.Draw(t, "field") + " "
		}
		l, err := Parse(text)
		if err != nil {
			return
		}
		if next := l.Next(sunday); !next.IsZero() {
			require.True(t, next.After(sunday), text)
		}
	})
}
