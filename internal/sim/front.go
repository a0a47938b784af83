package sim

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// This file is what a server does with what nodes and clients ask of it if the leader has to decide: server/nodes' Front,
// and Propose of server/servers. Both wait in selects.

// The times of both.
const (
	holdFor   = 5 * time.Second // for a leader
	nodeCall  = 8 * time.Second // to the leader, for a node
	peerCall  = 10 * time.Second
	askAgain  = 100 * time.Millisecond
	touchWith = 4 * time.Second
)

// touch is assignment.Deps.Touch: an error while this server may not know what others do.
func (s *server) touch() error {
	if !s.accepts && s.w.Now.Sub(s.member.contact) > touchWith {
		return unavailable("this server is cut off from the leader")
	}
	return nil
}

// atLeader has f done at the leader, and waits for one for a while.
func atLeader[T any](p *virtual.Proc, s *server, f func(p *virtual.Proc, s *server) (T, error)) (answer T, err error) {
	if s.w.quorum == nil {
		return f(p, s)
	}
	for until := s.w.Now.Add(holdFor); ; {
		switch l := s.member.leader; {
		case s.accepts:
			answer, err = f(p, s)
		case l < 0 || l == s.number:
			err = drover.Errorf(drover.NotLeader, "No cluster leader")
		default:
			answer, err = call(s.w.net, p, question{s.String(), l, nodeCall, true}, f)
		}
		code := drover.CodeOf(err)
		if err == nil || code != drover.NotLeader && code != drover.Unavailable {
			return answer, err
		}
		if !s.w.Now.Before(until) {
			return answer, drover.Errorf(drover.Unavailable, "asking the leader: %w", err)
		}
		p.Sleep(askAgain)
	}
}

// register is a node's registration.
func (s *server) register(p *virtual.Proc, n *drover.Node) (exchange.Registration, error) {
	return atLeader(p, s, func(_ *virtual.Proc, s *server) (exchange.Registration, error) { return s.control.Register(s.w.ctx, n) })
}

// heartbeat is a node's sign of life.
func (s *server) heartbeat(p *virtual.Proc, nodeID string) (exchange.Registration, error) {
	return atLeader(p, s, func(_ *virtual.Proc, s *server) (exchange.Registration, error) {
		return s.control.Heartbeat(s.w.ctx, nodeID)
	})
}

// push is what a node reports. A follower goes on with a report that its node has given up and replaced by a newer one, through
// another server; the older one may come later.
func (s *server) push(p *virtual.Proc, n *node, updates []exchange.AllocUpdate) error {
	_, err := atLeader(p, s, func(_ *virtual.Proc, s *server) (struct{}, error) {
		if err := s.current(); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.control.Push(s.ctx, n.Spec.ID, updates)
	})
	return err
}

// current returns once the state of a server that leads has all that was acknowledged before.
func (s *server) current() error {
	term := s.disk.term
	if s.w.quorum == nil || s.member.ready == term && s.accepts {
		return nil
	}
	if _, _, err := (ownLog{s}).Propose(s.ctx, &command.Barrier{}); err != nil {
		return err
	}
	s.member.ready = term
	return nil
}

// proposeToLeader appends the command, through the leader if that is another server, and returns once the state here has it.
func (s *server) proposeToLeader(ctx context.Context, c command.Command) (index uint64, result any, err error) {
	p := s.w.Current
	for until := s.w.Now.Add(holdFor); ; {
		switch l := s.member.leader; {
		case s.accepts:
			index, result, err = ownLog{s}.Propose(ctx, c)
		case l < 0 || l == s.number:
			err = drover.Errorf(drover.NotLeader, "No cluster leader")
		default:
			index, result, err = s.through(p, l, c)
		}
		if drover.CodeOf(err) != drover.NotLeader || !s.w.Now.Before(until) {
			return index, result, err
		}
		p.Sleep(askAgain)
	}
}

// through has the leader append the command, and waits for what it answers here.
func (s *server) through(p *virtual.Proc, leader int, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	index, err := call(s.w.net, p, question{s.String(), leader, peerCall, false}, func(_ *virtual.Proc, l *server) (uint64, error) {
		c, err := command.Decode(data)
		if err != nil {
			return 0, err
		}
		index, _, err := ownLog{l}.Propose(l.ctx, c)
		if index > 0 {
			return index, nil
		}
		return 0, err
	})
	if err != nil {
		return 0, nil, err
	}
	for until := s.w.Now.Add(holdFor); ; {
		changed := s.store.WatchAny()
		if s.store.Index() >= index {
			break
		}
		left := until.Sub(s.w.Now)
		if left <= 0 || !clock.Await(s.ctx, virtual.Clock{W: s.w.World, Scope: s.process}, left, changed) {
			return index, nil, drover.Errorf(drover.Canceled, "waiting for entry %d, which is committed", index)
		}
	}
	a, ok := s.member.answers[index]
	if !ok {
		return index, nil, unavailable("the entry is committed, and its answer is not known any more")
	}
	return index, a.value, a.err
}

// ask asks a server, the one of before first. Who does not get an answer asks another the next time.
func ask[T any](n *node, p *virtual.Proc, f func(p *virtual.Proc, s *server) (T, error)) (answer T, err error) {
	w := n.w
	if w.quorum == nil {
		if !n.travel(p) {
			return answer, unavailable("no way to the server")
		}
		a, err := f(p, w.servers[0])
		if !n.travel(p) {
			return answer, unavailable("the answer was lost")
		}
		return a, err
	}
	at := n.at
	answer, err = call(w.net, p, question{n.Spec.Name, at, pullWait + nodeCall, true}, f)
	if drover.CodeOf(err) == drover.Unavailable && n.at == at {
		n.at = (at + 1) % len(w.servers)
	}
	return answer, err
}
