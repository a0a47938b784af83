package term

import (
	"context"
	"net/url"
	"slices"
)

// Listing is how a list of the API is shown to people.
type Listing[T any] struct {
	Path    string             // that the list is read from
	Query   url.Values         // may be nil
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
	var list []T
	if _, err := c.Get(ctx, l.Path, l.Query, &list); err != nil {
		return err
	}
	return Show(app, o, list, l)
}

// Show shows a list as List does that was read already: Path and Query of l do not count. Errors: Invalid for a wrong template.
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
