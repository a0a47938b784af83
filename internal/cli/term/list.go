package term

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/api"
)

// Listing is how a list of the API is shown to people.
type Listing[T any] struct {
	Path    string             // that the list is read from
	Query   url.Values         // may be nil
	Page    *Page              // nil: the whole list
	Compare func(x, y T) int   // its order; nil: as the API gives it
	None    string             // what is said of an empty list
	Heading string             // of the table, columns parted by |
	Row     func(v T) []string // one cell a column
}

// List reads a list and shows it in the order of l.Compare, as data if that was asked for: scripts get the same order
// as people. Errors: the API's; Invalid for a wrong template.
func List[T any](ctx context.Context, app *App, o *Output, l Listing[T]) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	list := []T{} // which is [] for programs
	h, err := c.Call(ctx, http.MethodGet, l.Path, l.Page.Query(l.Query), nil, &list)
	if err != nil {
		return err
	}
	if err := Show(app, o, list, l); err != nil {
		return err
	}
	More(app, h)
	return nil
}

// More says on stderr how many have which status, if that was asked for, and how a list goes on, if it does.
func More(app *App, h http.Header) {
	if counts := h.Get("Drover-Counts"); counts != "" {
		fmt.Fprintln(app.Err, counts)
	}
	if next := h.Get("X-Nomad-NextToken"); next != "" {
		fmt.Fprintf(app.Err, "There are more: -page-token %s\n", next)
	}
}

// Page says which of a list's things are wanted. The server chooses them.
type Page struct {
	filter, token string
	perPage       int
	search, sort  string
	counts        bool
	statuses      []string
}

// Bind adds Nomad's flags; example is a filter for this list.
func (p *Page) Bind(f *pflag.FlagSet, example string) {
	f.StringVar(&p.filter, "filter", "", "only those that match this expression, such as '"+example+"'")
	f.StringVar(&p.token, "page-token", "", "go on after a page")
	f.IntVar(&p.perPage, "per-page", 0, "so many a page; default: all")
}

// BindSearch adds Bind's flags, and those of lists that the server also searches and sorts, which Nomad has not.
func (p *Page) BindSearch(f *pflag.FlagSet, example, statuses, sorts string) {
	p.Bind(f, example)
	f.StringVar(&p.search, "search", "", "only those that have each of these words in their names or in what they are part of")
	f.StringSliceVar(&p.statuses, "status", nil, "only those that are one of: "+statuses)
	f.BoolVar(&p.counts, "counts", false, "say on stderr, too, how many have which status, whatever -status asks for")
	f.StringVar(&p.sort, "sort", "", "order by "+sorts+"; with - before it the other way round")
}

// Sorted reports whether a person chose the order.
func (p *Page) Sorted() bool { return p.sort != "" }

// Query adds to q what the flags say.
func (p *Page) Query(q url.Values) url.Values {
	if p == nil {
		return q
	}
	out := api.Query("filter", p.filter, "next_token", p.token)
	maps.Copy(out, q)
	if p.perPage > 0 {
		out.Set("per_page", strconv.Itoa(p.perPage))
	}
	maps.Copy(out, api.Query("search", p.search, "sort", p.sort))
	if p.counts {
		out.Set("counts", "status")
	}
	for _, status := range p.statuses {
		out.Add("status", status)
	}
	return out
}

// Show shows a list as List does that was read already: Path, Query and Page of l do not count. Errors: Invalid for a wrong template.
func Show[T any](app *App, o *Output, list []T, l Listing[T]) error {
	if l.Compare != nil {
		slices.SortStableFunc(list, l.Compare)
	}
	if done, err := o.Data(app.Out, list); done {
		return err
	}
	var rows [][]string
	for _, v := range list {
		rows = append(rows, l.Row(v))
	}
	return Table(app.Out, l.None, l.Heading, rows)
}
