package parts

import "github.com/drover-project/drover/internal/httpapi/web/html"

// Label tells which cluster the page is about, where its agent's configuration says so.
type Label struct{ Text, Background, Color string }

// Part shows it; the zero value is nothing. Its colours are data, which the script sets: no page has a style of its own.
func (l Label) Part() html.Part {
	if l.Text == "" {
		return html.Part{}
	}
	return html.El("strong", html.ID("label"), html.Class("label"), html.Attr("data-background", l.Background),
		html.Attr("data-color", l.Color), html.Text(l.Text))
}
