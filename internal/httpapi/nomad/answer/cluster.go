package answer

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// Cluster is what every answer is made with: the state that it shows, and what its headers say of the servers. The
// groups of the face embed it.
type Cluster struct {
	State  State
	Clock  clock.Clock
	Region string
	Leader func() string // the leader's RPC address, "" while there is none
}

const indexHeader = "X-Nomad-Index"

// SetIndex sets the headers that say how new the answer is. The index is never 0, even of a table that was always
// empty: a client that waits for what follows 0 would be answered at once, again and again.
func (c *Cluster) SetIndex(w http.ResponseWriter, index uint64) {
	h := w.Header()
	h.Set(indexHeader, strconv.FormatUint(max(index, 1), 10))
	h.Set("X-Nomad-LastContact", "0")
	h.Set("X-Nomad-KnownLeader", strconv.FormatBool(c.Leader() != ""))
}

// Reply answers a read that has no index of its own: it gets the state's.
func (c *Cluster) Reply(w http.ResponseWriter, r *http.Request, v any) error {
	c.SetIndex(w, c.State.Snapshot().Index())
	return httpapi.WriteJSON(w, r, http.StatusOK, v)
}

// Done answers an action that has no result: with the state's index alone.
func (c *Cluster) Done(w http.ResponseWriter, r *http.Request) error {
	return c.Reply(w, r, struct{ Index uint64 }{c.State.Snapshot().Index()})
}

// Written answers a write with v, and with the index at which it was committed.
func (c *Cluster) Written(w http.ResponseWriter, r *http.Request, o drover.Outcome, v any) error {
	c.SetIndex(w, o.Index)
	return httpapi.WriteJSON(w, r, http.StatusOK, v)
}

// Meta is embedded in those of Nomad's answers that repeat the headers in their body.
type Meta struct {
	Index       uint64
	LastContact int64 // ns since the leader was heard; always 0, as the leader answers
	KnownLeader bool
	NextToken   string // always empty: no answer that embeds Meta comes in pages
}

// NewMeta returns the Meta of an answer at the index.
func NewMeta(index uint64) Meta { return Meta{Index: index, KnownLeader: true} }

// ErrMethod returns the refusal of a method that a known path does not have.
func ErrMethod() error {
	return &httpapi.StatusError{Status: http.StatusMethodNotAllowed, Err: errors.New("Invalid method")} //nolint:staticcheck // Nomad's words
}
