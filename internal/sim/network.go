package sim

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// network carries what servers and nodes say to each other.
type network struct {
	*virtual.Network
	w *World
}

func newNetwork(w *World) *network { return &network{virtual.NewNetwork(w.World), w} }

// lag draws how long entries take to a follower.
func (n *network) lag(s *server) time.Duration {
	if n.w.Now.Before(n.w.lagging[s.number]) {
		return n.w.Between(500*time.Millisecond, 8*time.Second)
	}
	return n.Delay()
}

// question says how a call is made.
type question struct {
	from   string
	to     int // a server
	within time.Duration
	again  bool // it may be asked twice: what it does must not matter then
}

// call has f done at a server, in a loop of that server's, and returns what f did. Errors: f's; Unavailable: nobody knows whether
// it was done.
func call[T any](n *network, p *virtual.Proc, q question, f func(p *virtual.Proc, s *server) (T, error)) (answer T, err error) {
	w, done, answered := n.w, &virtual.Signal{}, false
	s := w.servers[q.to]
	tell := func(a T, e error) {
		if !answered {
			answered, answer, err = true, a, e
			done.Raise()
		}
	}
	broken := func() { tell(answer, unavailable("the connection broke")) }
	arrive := func() {
		if w.servers[q.to] != s || s.process.Over {
			broken()
			return
		}
		s.process.Spawn("answer", func(p *virtual.Proc) {
			a, e := f(p, s)
			n.Send(s.String(), q.from, "reply", func() { tell(a, e) }, broken)
		})
	}
	n.Send(q.from, s.String(), "request", arrive, broken)
	if q.again && n.Repeats() {
		n.Send(q.from, s.String(), "request again", arrive, func() {})
	}
	if !n.Await(p, done, q.within, func() bool {
		return s.running() && w.servers[q.to] == s && n.Open(q.from, s.String()) && n.Open(s.String(), q.from)
	}) {
		broken()
	}
	return answer, err
}

func unavailable(text string) error { return drover.Errorf(drover.Unavailable, "%s", text) }
