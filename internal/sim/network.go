package sim

import (
	"time"

	"github.com/drover-project/drover"
)

// network carries what servers and nodes say to each other: late, in another order, twice, or not at all, and between two of
// them maybe in one direction only. Who asks over a connection that is dead notices that after a while, as pings do.
type network struct {
	w       *World
	closed  map[string]int // ways "from>to" that are cut, each by so many faults; "*" is everybody
	loses   int            // of a hundred messages
	repeats int            // of a hundred questions that may be asked twice
	slow    bool
}

func newNetwork(w *World) *network { return &network{w: w, closed: map[string]int{}} }

// The times of connections: how often it is looked whether one is dead, and how long that must be so.
const (
	pingEvery = 500 * time.Millisecond
	deadAfter = 1500 * time.Millisecond
)

// open reports whether messages get from one to the other.
func (n *network) open(from, to string) bool {
	for _, way := range [...]string{from + ">" + to, from + ">*", "*>" + to} {
		if n.closed[way] > 0 {
			return false
		}
	}
	return true
}

// shut cuts a way for that long.
func (n *network) shut(from, to string, d time.Duration) {
	way := from + ">" + to
	n.closed[way]++
	n.w.after(d, "open", func() { n.closed[way] = max(0, n.closed[way]-1) })
}

// delay draws how long a message travels.
func (n *network) delay() time.Duration {
	if n.slow {
		return n.w.between(time.Millisecond, 2*time.Second)
	}
	return n.w.between(100*time.Microsecond, 10*time.Millisecond)
}

// lag draws how long entries take to a follower.
func (n *network) lag(s *server) time.Duration {
	if n.w.now.Before(n.w.lagging[s.number]) {
		return n.w.between(500*time.Millisecond, 8*time.Second)
	}
	return n.delay()
}

// send carries a message. One that is lost is sent again by the connection, or the connection breaks, which is told to lost.
func (n *network) send(from, to string, label string, arrive, lost func()) {
	d := n.delay()
	if n.loses > 0 && n.w.chance(n.loses) {
		if n.w.chance(30) {
			n.w.after(n.w.between(d, deadAfter), "lost", lost)
			return
		}
		d += n.w.between(200*time.Millisecond, 3*time.Second)
	}
	n.w.after(d, label, func() {
		if n.open(from, to) {
			arrive()
		}
	})
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
func call[T any](n *network, p *proc, q question, f func(p *proc, s *server) (T, error)) (answer T, err error) {
	w, done, answered := n.w, &signal{}, false
	s := w.servers[q.to]
	tell := func(a T, e error) {
		if !answered {
			answered, answer, err = true, a, e
			done.raise()
		}
	}
	broken := func() { tell(answer, unavailable("the connection broke")) }
	arrive := func() {
		if w.servers[q.to] != s || s.process.over {
			broken()
			return
		}
		s.process.spawn("answer", func(p *proc) {
			a, e := f(p, s)
			n.send(s.String(), q.from, "reply", func() { tell(a, e) }, broken)
		})
	}
	n.send(q.from, s.String(), "request", arrive, broken)
	if q.again && n.repeats > 0 && w.chance(n.repeats) {
		n.send(q.from, s.String(), "request again", arrive, func() {})
	}
	silent := time.Duration(0)
	for until := w.now.Add(q.within); !answered; {
		left := until.Sub(w.now)
		if left <= 0 || silent >= deadAfter {
			broken()
			break
		}
		step := min(left, pingEvery)
		if done.wait(p, step) {
			break
		}
		if silent += step; s.running() && w.servers[q.to] == s && n.open(q.from, s.String()) && n.open(s.String(), q.from) {
			silent = 0
		}
	}
	return answer, err
}

func unavailable(text string) error { return drover.Errorf(drover.Unavailable, "%s", text) }
