package answer

import (
	"fmt"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// maxWait is the default and the limit of a blocking query.
const maxWait = 5 * time.Minute

// Query is what Nomad's query parameters ask for.
type Query struct {
	Namespace string // "*" = all
	Prefix    string // of ids; of names where a table has no ids
	Filter    string // a go-bexpr expression
	PerPage   int    // 0 = all on one page
	Next      string // the page's token, of the page before
	Reverse   bool
	Search    string        // words, each of which an element has somewhere
	Statuses  []string      // the one or the other
	Counts    string        // "status": how many elements have each is wanted, too
	Sort      string        // what to order by, with - before it for the reverse; "" is the list's own order
	MinIndex  uint64        // what the client knows already: the answer waits for more; 0 = answer at once
	Wait      time.Duration // how long it waits; in (0, maxWait]
}

// ParseQuery reads the parameters that all lists and reads share. Errors: Invalid.
func (c *Cluster) ParseQuery(r *http.Request) (q Query, err error) {
	v := r.URL.Query()
	if err := c.CheckRegion(v.Get("region")); err != nil {
		return q, err
	}
	q = Query{Namespace: Namespace(r), Prefix: v.Get("prefix"), Filter: v.Get("filter"), Next: v.Get("next_token")}
	q.Search, q.Sort, q.Statuses, q.Counts = v.Get("search"), v.Get("sort"), v["status"], v.Get("counts")
	if q.Reverse, err = httpapi.BoolParam(r, "reverse", false); err != nil {
		return q, err
	}
	perPage, err := httpapi.IntParam(r, "per_page", 0)
	if err != nil {
		return q, err
	}
	if perPage < 0 || perPage > 1<<31-1 {
		return q, drover.Errorf(drover.Invalid, "parameter \"per_page\" is %d, but must be from 0 to 2147483647", perPage)
	}
	q.PerPage = int(perPage)
	if q.MinIndex, err = httpapi.UintParam(r, "index", 0); err != nil {
		return q, err
	}
	if q.Wait, err = httpapi.DurationParam(r, "wait", maxWait); err != nil {
		return q, err
	}
	if q.Wait <= 0 || q.Wait > maxWait {
		q.Wait = maxWait
	}
	return q, nil
}

// CheckRegion refuses a region that is not this cluster's; "" is this one. Errors: Nomad's.
func (c *Cluster) CheckRegion(region string) error {
	if region == "" || region == c.Region {
		return nil
	}
	err := fmt.Errorf("No path to region %q: this cluster is region %q", region, c.Region) //nolint:staticcheck // Nomad's words
	return &httpapi.StatusError{Status: http.StatusInternalServerError, Err: err}
}

// Namespace returns the namespace that a request asks for; "*" stands for all.
func Namespace(r *http.Request) string {
	v := r.URL.Query()["namespace"]
	if len(v) == 0 || v[0] == "" {
		return drover.DefaultNamespace
	}
	return v[0]
}
