package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// perPage is how many rows a list shows; the API pages, sorts and filters.
const perPage = 50

// nextToken is where the API says where the next page begins.
const nextToken = "X-Nomad-Nexttoken"

// listing is a page of a list.
type listing struct {
	rows int
	next string
}

// list asks the API for a page of a list, of the rows that the viewer's address asks for. Errors: those of ask.
func list[T any](f *Face, r *http.Request, path string, query url.Values) ([]T, listing, error) {
	q := r.URL.Query()
	for name, to := range map[string]string{"prefix": "prefix", "after": "next_token"} {
		if v := q.Get(name); v != "" {
			query.Set(to, v)
		}
	}
	query.Set("per_page", strconv.Itoa(perPage))
	var rows []T
	header, err := f.read(r, path+"?"+query.Encode(), &rows)
	return rows, listing{len(rows), header.Get(nextToken)}, err
}

// table is one with its rows; without rows it says why.
func table(caption string, columns []string, rows []html.Part, empty string) html.Part {
	if len(rows) == 0 {
		return html.El("p", html.Class("muted"), html.Text(empty))
	}
	head := make([]html.Part, 0, len(columns))
	for _, c := range columns {
		head = append(head, html.El("th", html.Attr("scope", "col"), html.Text(c)))
	}
	return html.El("div", html.Class("wide"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", caption),
		html.El("table", html.El("thead", html.El("tr", head...)), html.El("tbody", rows...)))
}

// row is one of a table.
func row(cells ...html.Part) html.Part {
	tds := make([]html.Part, 0, len(cells))
	for _, c := range cells {
		tds = append(tds, html.El("td", c))
	}
	return html.El("tr", tds...)
}

// link leads to an object that somebody else named.
func link(to html.URL, name string) html.Part { return html.El("a", html.Href(to), html.Name(name)) }

// search finds by the beginning of an id.
func search(r *http.Request) html.Part {
	return html.El("form", html.Class("row search"), html.Attr("role", "search"),
		html.El("label", html.Class("away"), html.Attr("for", "prefix"), html.Text(text.Search)),
		html.El("input", html.ID("prefix"), html.Attr("name", "prefix"), html.Attr("type", "search"), html.Attr("placeholder", text.Search),
			html.Attr("value", r.URL.Query().Get("prefix"))),
		html.El("button", html.Text(text.Find)))
}

// pager leads to the next page, and back to the first.
func pager(r *http.Request, at html.URL, l listing) html.Part {
	if prefix := r.URL.Query().Get("prefix"); prefix != "" {
		at = at.With("prefix", prefix)
	}
	return html.El("div", html.Class("row pager"),
		html.If(r.URL.Query().Get("after") != "", html.El("a", html.Href(at), html.Text(text.FirstPage))),
		html.If(l.next != "", html.El("a", html.Href(at.With("after", l.next)), html.Text(text.NextPage))))
}

// tones are the tones of statuses, those of all kinds of objects.
var tones = map[string]string{
	"running": "ok", "healthy": "ok", "successful": "ok", "ready": "ok", "complete": "idle", "dead": "idle", "pending": "prog",
	"initializing": "prog", "failed": "bad", "down": "bad", "lost": "lost", "unknown": "lost", "disconnected": "lost",
	"ineligible": "warn", "draining": "warn",
	"alive": "ok", "unhealthy": "bad", "left": "idle",
}

// status is a word with its tone and shape: colour is never the only sign.
func status(word string) html.Part {
	return html.El("span", html.Class("status "+tones[word]), html.Text(word))
}

// facts is a list of names with what they are.
func facts(pairs ...html.Part) html.Part { return html.El("dl", pairs...) }

func factOf(name string, value html.Part) html.Part {
	return html.El("div", html.El("dt", html.Text(name)), html.El("dd", value))
}
