package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// show answers with a page whose body comes of the API, or with what the API said instead.
func (f *Face) show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error {
	status, head := http.StatusOK, html.El("h1", html.Name(title))
	if err != nil {
		if status, body = httpapi.Status(err), failed(r, err); status >= http.StatusInternalServerError {
			body = livePart("failed", nil, 2, body) // it may mend by itself
		}
	}
	return f.write(w, r, status, view{title: title, body: html.Group(head, body)})
}

// allocationTable shows the newest allocations first, at most a page of them.
func allocationTable(all []drover.AllocationListStub) html.Part {
	slices.SortFunc(all, func(a, b drover.AllocationListStub) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	rows := make([]html.Part, 0, perPage)
	for _, a := range all[:min(len(all), perPage)] {
		rows = append(rows, row(link(allocPath(a.ID), shortID(a.ID)), html.Name(a.Name), status(a.ClientStatus),
			html.Text(a.DesiredStatus), link(html.Path("ui", "clients", a.NodeID), a.NodeName), moment(a.CreateTime)))
	}
	more := html.Part{}
	if len(all) > perPage {
		more = html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(text.NewestOf, perPage, len(all))))
	}
	return html.Group(table(text.Allocations, text.AllocationColumns, rows, text.Nothing), more)
}

// moment is a time in UTC, from unix ns; 0 is a dash.
func moment(ns int64) html.Part { return parts.Moment(ns) }

// environmentsPath lists what the viewer may read, of all namespaces.
const environmentsPath = "/v1/environments?namespace=*"
