package answer

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

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
	// LastContact is how long ago this server heard of the leader: 0 if it leads, negative if never; nil = 0.
	LastContact func() time.Duration
}

const indexHeader = "X-Nomad-Index"

// SetIndex sets the headers that say how new the answer is. The index is never 0, even of a table that was always
// empty: a client that waits for what follows 0 would be answered at once, again and again.
func (c *Cluster) SetIndex(w http.ResponseWriter, index uint64) {
	h := w.Header()
	h.Set(indexHeader, strconv.FormatUint(max(index, 1), 10))
	h.Set("X-Nomad-LastContact", strconv.FormatInt(c.contact().Milliseconds(), 10))
	h.Set("X-Nomad-KnownLeader", strconv.FormatBool(c.Leader() != ""))
}

// contact is how long ago the leader was heard. A server that never heard of one says the longest time that there is.
func (c *Cluster) contact() time.Duration {
	if c.LastContact == nil {
		return 0
	}
	if ago := c.LastContact(); ago >= 0 {
		return ago
	}
	return math.MaxInt64
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
	LastContact int64 // ns since the leader was heard
	KnownLeader bool
	NextToken   string // always empty: no answer that embeds Meta comes in pages
}

// NewMeta returns the Meta of an answer that only the leader gives, at the index.
func NewMeta(index uint64) Meta { return Meta{Index: index, KnownLeader: true} }

// MetaOf returns the Meta of an answer that any server gives, at the index.
func (c *Cluster) MetaOf(index uint64) Meta {
	return Meta{Index: index, LastContact: int64(c.contact()), KnownLeader: c.Leader() != ""}
}

// ErrMethod returns the refusal of a method that a known path does not have.
func ErrMethod() error {
	return &httpapi.StatusError{Status: http.StatusMethodNotAllowed, Err: errors.New("Invalid method")} //nolint:staticcheck // Nomad's words
}
