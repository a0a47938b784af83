package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/lists"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// perPage is how many rows a table shows.
const perPage = 50

// nextToken is where the API says where the next page begins.
const nextToken = "X-Nomad-Nexttoken"

// listInto asks the API for a page of a list, of the rows that the viewer's address asks for, and returns where the next page begins.
// Errors: those of ask.
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

// What other packages have, by the names that pages use.
var (
	tokenOf = cookies.Token
	tell    = cookies.Tell
	told    = cookies.Told

	table    = parts.Table
	jobPath  = parts.JobPath
	counts   = lists.Counts
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

	allocPath = parts.AllocPath

	notice = parts.Notice
	hint   = parts.Hint
	hidden = parts.Hidden
	button = parts.Button
	area   = parts.Area
	lines  = parts.Lines
)
