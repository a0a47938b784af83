package chaos

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kind is what breaks.
type kind string

// The kinds of faults. Those of a server hit the leader every second time.
const (
	killServer   kind = "kill -9 a server"
	pauseServer  kind = "stop a server with SIGSTOP"
	slowServer   kind = "slow a server down"
	cutServer    kind = "cut a server off from the others"
	deafServer   kind = "a server hears no other"
	muteServer   kind = "no other hears a server"
	fullDisk     kind = "fill a server's disk"
	tornLog      kind = "kill -9 a server, and tear its log"
	serverClock  kind = "kill -9 a server, and move its clock"
	losePackets  kind = "lose packets everywhere"
	killNode     kind = "kill -9 a node"
	pauseNode    kind = "stop a node with SIGSTOP"
	cutNode      kind = "cut a node off from all servers"
	cutNodeOne   kind = "cut a node off from a server"
	killMajority kind = "kill -9 two servers"
	serverDate   kind = "step a server's date"
	nodeDate     kind = "step a node's date"
)

var kinds = []kind{
	killServer, pauseServer, slowServer, cutServer, deafServer, muteServer, fullDisk, tornLog, serverClock, losePackets, killNode, pauseNode,
	cutNode, cutNodeOne, killMajority, serverDate, nodeDate,
}

// fault is one thing that breaks, and for how long.
type fault struct {
	kind   kind
	leader bool // of the servers it hits the leader, else one that follows
	pick   int  // which of several
	length time.Duration
	pause  time.Duration // after it is healed
	share  float64       // of packets
	jump   time.Duration // of the clock
	step   time.Duration // of the date, in either direction
}

// farthest is how far a date is stepped: less than what is kept of an execution that ended.
const farthest = 10 * time.Minute

// plan draws faults of these kinds that last so long together: all kinds once, in some order, then all again. All kinds come once,
// however short the time is.
func plan(seed uint64, total time.Duration, kinds []kind) (out []fault) {
	r := rand.New(rand.NewPCG(seed, 1))
	hits := r.IntN(2)
	for sum := time.Duration(0); sum < total; hits++ {
		for i, k := range r.Perm(len(kinds)) {
			f := fault{
				kind: kinds[k], leader: (hits+i)%2 == 0, pick: r.IntN(1 << 10),
				length: 2*time.Second + time.Duration(r.Int64N(int64(4*time.Second))),
				pause:  time.Second + time.Duration(r.Int64N(int64(2*time.Second))),
				share:  0.05 + 0.3*r.Float64(), jump: time.Duration(1+r.IntN(1_000_000)) * time.Second,
				step: time.Duration(r.Int64N(int64(2*farthest))) - farthest,
			}
			if r.IntN(8) == 0 { // some last until nodes and servers are given up
				f.length *= 5
			}
			if sum += f.length + f.pause; sum > total && len(out) >= len(kinds) {
				return out
			}
			out = append(out, f)
		}
	}
	return out
}

// hit is a fault under way.
type hit struct {
	fault
	servers []*host
	nodes   []*host
	heal    func() error
}

func (h hit) String() string {
	text := string(h.kind)
	for _, x := range append(h.servers, h.nodes...) {
		text += " " + x.name
	}
	switch h.kind {
	case losePackets:
		text += fmt.Sprintf(" (%.0f %%)", 100*h.share)
	case serverClock:
		text += fmt.Sprintf(" (%v)", h.jump)
	case serverDate, nodeDate:
		text += fmt.Sprintf(" (%v)", h.step.Truncate(time.Second))
	default:
	}
	return text
}

// aim chooses what the fault hits. leads is the leader's number.
func (w *world) aim(f fault, leads int) hit {
	f.leader = f.leader || *leaders
	h := hit{fault: f, heal: func() error { return nil }}
	one := w.servers[leads]
	if !f.leader {
		one = w.servers[(leads+1+f.pick%2)%3]
	}
	switch f.kind {
	case killNode, pauseNode, cutNode, nodeDate:
		h.nodes = []*host{w.nodes[f.pick%len(w.nodes)]}
	case cutNodeOne:
		h.nodes, h.servers = []*host{w.nodes[f.pick%len(w.nodes)]}, []*host{one}
	case losePackets:
		h.servers, h.nodes = w.servers, w.nodes
	case killMajority:
		h.servers = []*host{one, w.servers[(one.number+1)%3]}
	default:
		h.servers = []*host{one}
	}
	return h
}

// others are the addresses of the servers but this one.
func (w *world) others(but *host) (out []string) {
	for _, s := range w.servers {
		if s != but {
			out = append(out, s.address)
		}
	}
	return out
}

func addresses(list []*host) (out []string) {
	for _, h := range list {
		out = append(out, h.address)
	}
	return out
}

// all calls f for each host, and returns the first error.
func all(list []*host, f func(*host) error) error {
	for _, h := range list {
		if err := f(h); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return nil
}

func hearAgain(list []*host) func() error {
	return func() error { return all(list, func(h *host) error { return hears(h.name) }) }
}

func signalAll(list []*host, s syscall.Signal) error {
	return all(list, func(h *host) error { return h.signal(s) })
}

// strike breaks what the fault says. What it returns heals that.
func (w *world) strike(h hit) (heal func() error, err error) {
	hosts := append(append([]*host{}, h.servers...), h.nodes...)
	restart := func(forward time.Duration) func() error {
		return func() error { return all(hosts, func(x *host) error { return x.start(forward) }) }
	}
	switch h.kind {
	case killServer, killNode, killMajority:
		return restart(0), all(hosts, (*host).kill)
	case serverClock: // a later start of this server moves it back
		return restart(h.jump), all(hosts, (*host).kill)
	case tornLog:
		if err := all(hosts, (*host).kill); err != nil {
			return nil, err
		}
		return restart(0), all(hosts, (*host).tear)
	case pauseServer, pauseNode:
		return func() error { return signalAll(hosts, syscall.SIGCONT) }, signalAll(hosts, syscall.SIGSTOP)
	case slowServer:
		return w.slow(hosts[0]), nil
	case fullDisk:
		return func() error { return all(hosts, (*host).drain) }, all(hosts, (*host).fill)
	case serverDate, nodeDate:
		return func() error { return hosts[0].stepDate(0) }, hosts[0].stepDate(h.step)
	default:
		return w.strikeNet(h)
	}
}

// strikeNet breaks links.
func (w *world) strikeNet(h hit) (heal func() error, err error) {
	switch h.kind {
	case cutServer:
		one := h.servers[0]
		err = deaf(one.name, w.others(one)...)
		for _, s := range w.servers {
			if err == nil && s != one {
				err = deaf(s.name, one.address)
			}
		}
	case deafServer:
		err = deaf(h.servers[0].name, w.others(h.servers[0])...)
	case muteServer:
		for _, s := range w.servers {
			if err == nil && s != h.servers[0] {
				err = deaf(s.name, h.servers[0].address)
			}
		}
	case losePackets:
		err = all(append(append([]*host{}, h.servers...), h.nodes...), func(x *host) error { return lossy(x.name, h.share) })
	case cutNode:
		err = deaf(h.nodes[0].name, addresses(w.servers)...)
	case cutNodeOne:
		err = deaf(h.nodes[0].name, h.servers[0].address)
	default:
		err = fmt.Errorf("nobody knows how to %s", h.kind)
	}
	return hearAgain(append(append([]*host{}, w.servers...), w.nodes...)), err
}

// slow stops a server for most of the time, until it is healed.
func (w *world) slow(h *host) (heal func() error) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends when it is healed
		defer close(stopped)
		wait := func(s syscall.Signal, d time.Duration) bool {
			_ = h.signal(s) // if it ended, that is told elsewhere
			select {
			case <-stop:
				return false
			case <-time.After(d):
				return true
			}
		}
		for wait(syscall.SIGSTOP, 200*time.Millisecond) && wait(syscall.SIGCONT, 50*time.Millisecond) {
		}
	}()
	return func() error {
		close(stop)
		<-stopped
		return h.signal(syscall.SIGCONT)
	}
}

// TestASeedDrawsItsFaults: the same seed the same ones, and each kind before any comes again.
func TestASeedDrawsItsFaults(t *testing.T) {
	t.Parallel()
	require.Equal(t, plan(7, time.Hour, kinds), plan(7, time.Hour, kinds))
	require.NotEqual(t, plan(7, time.Hour, kinds), plan(8, time.Hour, kinds))
	seen := map[kind]int{}
	for _, f := range plan(7, time.Hour, kinds)[:2*len(kinds)] {
		seen[f.kind]++
	}
	for _, k := range kinds {
		require.Equal(t, 2, seen[k], k)
	}
	require.Empty(t, plan(7, 0, kinds))
	require.Len(t, plan(7, time.Second, kinds), len(kinds))
}
