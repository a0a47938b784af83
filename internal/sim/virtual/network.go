package virtual

import "time"

// Network carries messages between what has names: late, in another order, twice, or not at all, and between two of them maybe in one
// direction only. Who asks over a connection that is dead notices that after a while, as pings do.
type Network struct {
	w       *World
	closed  map[string]int // ways "from>to" that are cut, each by so many faults; "*" is everybody
	loses   int            // of a hundred messages
	repeats int            // of a hundred questions that may be asked twice
	slow    bool
}

// NewNetwork returns a network without faults.
func NewNetwork(w *World) *Network { return &Network{w: w, closed: map[string]int{}} }

// The times of connections: how often it is looked whether one is dead, and how long that must be so.
const (
	pingEvery = 500 * time.Millisecond
	deadAfter = 1500 * time.Millisecond
)

// Open reports whether messages get from one to the other.
func (n *Network) Open(from, to string) bool {
	for _, way := range [...]string{from + ">" + to, from + ">*", "*>" + to} {
		if n.closed[way] > 0 {
			return false
		}
	}
	return true
}

// Shut cuts a way for that long.
func (n *Network) Shut(from, to string, d time.Duration) {
	way := from + ">" + to
	n.closed[way]++
	n.w.After(d, "open", func() { n.closed[way] = max(0, n.closed[way]-1) })
}

// Worsen makes all of the network worse for a while: slow with "slownet"; with "loss" or "repeat" it is that percentage of the messages.
func (n *Network) Worsen(verb string, d time.Duration, percent int) {
	switch verb {
	case "slownet":
		n.slow = true
		n.w.After(d, "fast", func() { n.slow = false })
	case "loss":
		n.loses = percent
		n.w.After(d, "no loss", func() { n.loses = 0 })
	default:
		n.repeats = percent
		n.w.After(d, "no repeats", func() { n.repeats = 0 })
	}
}

// Heal ends all faults.
func (n *Network) Heal() { n.closed, n.loses, n.repeats, n.slow = map[string]int{}, 0, 0, false }

// Delay draws how long a message travels.
func (n *Network) Delay() time.Duration {
	if n.slow {
		return n.w.Between(time.Millisecond, 2*time.Second)
	}
	return n.w.Between(100*time.Microsecond, 10*time.Millisecond)
}

// Repeats draws whether a question is asked twice.
func (n *Network) Repeats() bool { return n.repeats > 0 && n.w.Chance(n.repeats) }

// Send carries a message. One that is lost is sent again by the connection, or the connection breaks, which is told to lost.
func (n *Network) Send(from, to, label string, arrive, lost func()) {
	d := n.Delay()
	if n.loses > 0 && n.w.Chance(n.loses) {
		if n.w.Chance(30) {
			n.w.After(n.w.Between(d, deadAfter), "lost", lost)
			return
		}
		d += n.w.Between(200*time.Millisecond, 3*time.Second)
	}
	n.w.After(d, label, func() {
		if n.Open(from, to) {
			arrive()
		}
	})
}

// Await waits until a question is done. It reports false if that takes too long, or the connection is dead, which alive denies.
func (n *Network) Await(p *Proc, done *Signal, within time.Duration, alive func() bool) bool {
	silent := time.Duration(0)
	for until := n.w.Now.Add(within); ; {
		left := until.Sub(n.w.Now)
		if left <= 0 || silent >= deadAfter {
			return false
		}
		step := min(left, pingEvery)
		if done.Wait(p, step) {
			return true
		}
		if silent += step; alive() {
			silent = 0
		}
	}
}
