package web

import (
	"net/http"

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

// moment is a time in UTC, from unix ns; 0 is a dash.
func moment(ns int64) html.Part { return parts.Moment(ns) }
