package parts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// None stands where there is nothing.
const None = "–"

// Table is one with its rows; without rows it says why.
func Table(caption string, columns []string, rows []html.Part, empty string) html.Part {
	head := make([]html.Part, 0, len(columns))
	for _, c := range columns {
		head = append(head, html.El("th", html.Attr("scope", "col"), html.Text(c)))
	}
	return TableOf(caption, head, rows, empty)
}

// TableOf is Table with the head's cells.
func TableOf(caption string, head, rows []html.Part, empty string) html.Part {
	if len(rows) == 0 {
		return html.El("p", html.Class("muted"), html.Text(empty))
	}
	return html.El("div", html.Class("wide"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", caption),
		html.El("table", html.El("thead", html.El("tr", head...)), html.El("tbody", rows...)))
}

// Row is one of a table.
func Row(cells ...html.Part) html.Part {
	tds := make([]html.Part, 0, len(cells))
	for _, c := range cells {
		tds = append(tds, html.El("td", c))
	}
	return html.El("tr", tds...)
}

// JobPath is a job's page, by Nomad's path: ID@NAMESPACE.
func JobPath(id, namespace string) html.URL { return html.Path("ui", "jobs", id+"@"+namespace) }

// AllocPath is a page about an allocation: AllocPath(id), AllocPath(id, "logs").
func AllocPath(id string, more ...string) html.URL {
	return html.Path(append([]string{"ui", "allocations", id}, more...)...)
}

// Link leads to an object that somebody else named.
func Link(to html.URL, name string) html.Part { return html.El("a", html.Href(to), html.Name(name)) }

// tones are the tones of statuses, those of all kinds of objects.
var tones = map[string]string{
	"running": "ok", "healthy": "ok", "successful": "ok", "ready": "ok", "complete": "idle", "dead": "idle", "pending": "prog",
	"initializing": "prog", "failed": "bad", "down": "bad", "lost": "lost", "unknown": "lost", "disconnected": "lost",
	"ineligible": "warn", "draining": "warn",
	"alive": "ok", "unhealthy": "bad", "left": "idle",
	"warm": "ok", "claimed": "prog", "busy": "prog", "requested": "prog", "warming": "prog", "destroyed": "idle",
	"planned": "prog", "creating": "prog", "booting": "prog", "registered": "prog", "active": "ok", "destroying": "prog", "orphaned": "lost",
	"gone": "idle", "blocked": "warn", "paused": "warn", "canceled": "idle", "cancelled": "idle", "unblocking": "prog",
}

// Status is a word with its tone and shape: colour is never the only sign.
func Status(word string) html.Part { return Toned(tones[word], word) }

// Toned are words with a tone: ok, prog, warn, bad, lost or idle.
func Toned(tone, words string) html.Part {
	return html.El("span", html.Class("status "+tone), html.Text(words))
}

// Facts is a list of names with what they are.
func Facts(pairs ...html.Part) html.Part { return html.El("dl", pairs...) }

// Fact is one of them.
func Fact(name string, value html.Part) html.Part {
	return html.El("div", html.El("dt", html.Text(name)), html.El("dd", value))
}

// Moment is a time in Unix nanoseconds, which a script shows in the zone of its reader; 0 is none.
func Moment(ns int64) html.Part {
	if ns == 0 {
		return html.Text(None)
	}
	t := time.Unix(0, ns).UTC()
	return html.El("time", html.Attr("datetime", t.Format(time.RFC3339Nano)), html.Text(t.Format("2006-01-02 15:04:05 UTC")))
}

// Instant is Moment for a time; the zero time is none.
func Instant(t time.Time) html.Part {
	if t.IsZero() {
		return Moment(0)
	}
	return Moment(t.UnixNano())
}

// Short is a duration to three digits or so, without parts that are nothing at its end; 0 is none, since nothing takes no time.
func Short(d time.Duration) string {
	switch {
	case d <= 0:
		return None
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	said := d.Round(100 * time.Millisecond).String()
	if strings.HasSuffix(said, "m0s") {
		said = strings.TrimSuffix(said, "0s")
	}
	if strings.HasSuffix(said, "h0m") {
		said = strings.TrimSuffix(said, "0m")
	}
	return said
}

// Size is a number of bytes in units of 1,024.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n < 1<<40:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f TiB", float64(n)/(1<<40))
}

// Live is a part of a page that the browser fetches anew when something of the topics changed, and if every is not 0 after so many
// seconds, too.
func Live(id string, topics []string, every int, content ...html.Part) html.Part {
	attributes := []html.Part{html.ID(id), html.Attr("data-live", strings.Join(topics, " "))}
	if every > 0 {
		attributes = append(attributes, html.Attr("data-every", strconv.Itoa(every)))
	}
	return html.El("section", append(attributes, content...)...)
}

// ShortID is the beginning of an id, which tells most from each other.
func ShortID(id string) string { return id[:min(8, len(id))] }

// LongPath reports whether nothing is to lead to the folders of a path. Each link would have all of the path up to its folder, so
// that a long address made a page of a thousand times its length. Kernels take 4 KiB.
func LongPath(at string) bool { return len(at) > 4<<10 || strings.Count(at, "/") > 64 }
