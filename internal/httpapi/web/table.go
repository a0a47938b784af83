package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
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
	var rows []T
	next, err := f.listInto(r, path, query, &rows)
	return rows, listing{len(rows), next}, err
}

// listInto is list for rows that out points to, and returns where the next page begins.
func (f *Face) listInto(r *http.Request, path string, query url.Values, out any) (next string, err error) {
	q := r.URL.Query()
	for name, to := range map[string]string{"prefix": "prefix", "after": "next_token"} {
		if v := q.Get(name); v != "" {
			query.Set(to, v)
		}
	}
	query.Set("per_page", strconv.Itoa(perPage))
	header, err := f.read(r, path+"?"+query.Encode(), out)
	return header.Get(nextToken), err
}

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

// What packages parts and cookies have, by the names that pages use.
var (
	tokenOf = cookies.Token
	tell    = cookies.Tell
	told    = cookies.Told

	table    = parts.Table
	row      = parts.Row
	link     = parts.Link
	status   = parts.Status
	facts    = parts.Facts
	factOf   = parts.Fact
	instant  = parts.Instant
	short    = parts.Short
	size     = parts.Size
	livePart = parts.Live
	unplaced = parts.Unplaced
	work     = parts.WorkText
)
