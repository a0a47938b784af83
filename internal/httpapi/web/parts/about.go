package parts

import (
	"cmp"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// About is what a job's file says of it for its page: a description, and links elsewhere.
func About(ui *drover.JobUIConfig) html.Part {
	if ui == nil {
		return html.Part{}
	}
	said := html.If(ui.Description != "", html.El("p", html.Name(ui.Description)))
	var links []html.Part
	for _, l := range ui.Links {
		if l != nil && l.URL != "" {
			links = append(links, html.El("li", html.Elsewhere(l.URL, cmp.Or(l.Label, l.URL))))
		}
	}
	return html.Group(said, html.If(len(links) > 0, html.El("ul", links...)))
}
