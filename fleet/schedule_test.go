package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

func at(t *testing.T, text string) time.Time {
	when, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return when
}

func TestPeriodsOfASchedule(t *testing.T) {
	t.Parallel()
	const monday = "2026-11-23T"
	for _, tt := range []struct {
		cron, zone string
		duration   time.Duration
		now        string
		want       bool
	}{
		{"30 8 * * 1-5", "Europe/Berlin", 2 * time.Hour, monday + "08:29:59+01:00", false},
		{"30 8 * * 1-5", "Europe/Berlin", 2 * time.Hour, monday + "08:30:00+01:00", true},
		{"30 8 * * 1-5", "Europe/Berlin", 2 * time.Hour, monday + "10:29:59+01:00", true},
		{"30 8 * * 1-5", "Europe/Berlin", 2 * time.Hour, monday + "10:30:00+01:00", false},
		{"30 8 * * 1-5", "Europe/Berlin", 2 * time.Hour, monday + "09:00:00Z", true},
		{"30 8 * * 1-5", "", 2 * time.Hour, monday + "08:15:00Z", false},
		{"30 8 * * 1-5", "Europe/Berlin", 2 * time.Hour, "2026-11-22T09:00:00+01:00", false}, // a Sunday
		{"30 8 * * 5-7", "", time.Hour, "2026-11-22T09:00:00Z", true},                        // whose number is 7
		{"30 8 * * 0", "", time.Hour, "2026-11-22T09:00:00Z", true},                          // and 0
		{"30 8 * * 0-0", "", time.Hour, "2026-11-21T09:00:00Z", false},                       // the Saturday before it
		{"30 8 * * 1-7/2", "", time.Hour, "2026-11-22T09:00:00Z", true},
		{"30 8 * * 6/2", "", time.Hour, "2026-11-22T09:00:00Z", false},
		{"30 8 * * 5/2", "", time.Hour, "2026-11-22T09:00:00Z", true},
		{"0 0 1 * 1", "", time.Hour, monday + "00:10:00Z", true}, // either of the day's fields
		{"0 0 1 * 1", "", time.Hour, "2026-12-01T00:10:00Z", true},
		{"0 0 1 * 1", "", time.Hour, "2026-12-02T00:10:00Z", false},
		{"0 0 */1 * 2", "", time.Hour, monday + "00:10:00Z", false}, // only the weekday is restricted
		{"0 0 1-31 * 2", "", time.Hour, monday + "00:10:00Z", false},
		{"0 0 1 * 0-6", "", time.Hour, monday + "00:10:00Z", false}, // only the day is
		{"0 0 1 * 1,2,3-7", "", time.Hour, monday + "00:10:00Z", false},
		{"0 22 * * *", "", 12 * time.Hour, monday + "09:59:59Z", true}, // since yesterday
		{"*/15 0,12 1 1-6 *", "", time.Minute, "2026-02-01T12:45:10Z", true},
		{"*/15 0,12 1 1-6 *", "", time.Minute, "2026-07-01T12:45:10Z", false},
		{"0 2 29 2 *", "", time.Hour, "2028-02-29T02:30:00Z", true},
		{"30 2 * * *", "Europe/Berlin", time.Hour, "2027-03-28T03:00:00+02:00", false}, // there is no half past two
		{"30 2 * * *", "Europe/Berlin", 30 * time.Minute, "2026-10-25T02:45:00+01:00", true},
		{"30 2 * * *", "Europe/Berlin", 30 * time.Minute, "2026-10-25T02:45:00+02:00", true}, // there are two
		{"30 2 * * *", "Europe/Berlin", 30 * time.Minute, "2026-10-25T02:15:00+01:00", false},
		{"30 8 * *", "", time.Hour, monday + "08:30:00Z", false},                  // wrong
		{"30 8 * * *", "Europe/Atlantis", time.Hour, monday + "08:30:00Z", false}, // nowhere
	} {
		s := Schedule{Cron: tt.cron, Zone: tt.zone, Duration: tt.duration}
		require.Equal(t, tt.want, s.ActiveAt(at(t, tt.now)), "%q for %s at %s", tt.cron, tt.duration, tt.now)
	}
}

func TestWrongCronLinesAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8", "* * * * 5-8",
		"x * * * *", "* * * * 1-x", "*/x * * * *", "-1 * * * *",
	} {
		_, err := parseCron(line)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), line)
	}
	for _, never := range []string{"5-1 * * * *", "0 0 31 2 *", "0 0 * dec-feb *", "0 0 * * 5-1"} {
		p := goodFleet()
		p.Schedule = []Schedule{{Cron: never, Duration: time.Hour}}
		require.ErrorContains(t, p.Validate(), "Schedule[0].Cron: names no time")
		require.False(t, p.Schedule[0].ActiveAt(time.Unix(1790985600, 0)))
	}
	p := goodFleet()
	p.Schedule = []Schedule{{Cron: "* * *", Duration: time.Hour}}
	require.ErrorContains(t, p.Validate(), "Schedule[0].Cron: must have five fields (minute hour day month weekday), got 3 in \"* * *\"")
}

// A period is on exactly if a minute that the line names is less than its duration ago: the model looks at each minute.
func TestPeriodsBeginAtTheMinutesThatALineNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, lowest, highest int) []int {
			return rapid.SliceOfNDistinct(rapid.IntRange(lowest, highest), 1, 4, rapid.ID).Draw(t, name)
		}
		minutes, hours, weekdays := pick("minutes", 0, 59), pick("hours", 0, 23), pick("weekdays", 0, 6)
		s := Schedule{
			Cron:     fmt.Sprintf("%s %s * * %s", list(minutes), list(hours), list(weekdays)),
			Zone:     rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York"}).Draw(t, "zone"),
			Duration: time.Duration(rapid.IntRange(1, 300).Draw(t, "duration")) * time.Minute,
		}
		zone, err := time.LoadLocation(s.Zone)
		require.NoError(t, err)
		day := rapid.SampledFrom([]int64{1790985600, 1792886400, 1793491200, 1795392000, 1806192000}).Draw(t, "day") // clocks change on most
		now := time.Unix(day+rapid.Int64Range(-86400, 86400).Draw(t, "now"), 0)
		want := false
		for m := now.Truncate(time.Minute); m.After(now.Add(-s.Duration)); m = m.Add(-time.Minute) {
			l := m.In(zone)
			want = want || slices.Contains(minutes, l.Minute()) && slices.Contains(hours, l.Hour()) && slices.Contains(weekdays, int(l.Weekday()))
		}
		require.Equal(t, want, s.ActiveAt(now), "%q in %q for %s at %s", s.Cron, s.Zone, s.Duration, now.In(zone))
	})
}

func list(numbers []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ","), "[]")
}

func TestTheMinimumIsTheGreatestOfAllSchedules(t *testing.T) {
	t.Parallel()
	p := Policy{Min: 1, Schedule: []Schedule{
		{Cron: "0 8 * * *", Duration: 4 * time.Hour, Min: 3},
		{Cron: "0 10 * * *", Duration: time.Hour, Min: 5},
		{Cron: "0 11 * * *", Duration: time.Hour},
	}}
	for now, want := range map[string]int{"07": 1, "09": 3, "10": 5, "11": 3, "12": 1} {
		require.Equal(t, want, p.MinAt(at(t, "2026-11-23T"+now+":30:00Z")), now)
	}
}

func BenchmarkActiveAt(b *testing.B) {
	s, now := Schedule{Cron: "30 8 * * 1-5", Zone: "Europe/Berlin", Duration: 10 * time.Hour}, time.Unix(1790985600, 0)
	for b.Loop() {
		s.ActiveAt(now)
	}
}
