package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/sim/virtual"
	"github.com/drover-project/drover/internal/tables"
)

// lessee is what a server is among others that hand out runners. This file is server/lessee, whose loops select over channels.
type lessee struct {
	life  *virtual.Scope  // of the execution service; nil before the first
	until time.Time       // it may hand out, by its own clock
	watch leases.Watch    // while it leads
	held  map[string]held // by token: what leaders have withheld here
	wants map[string]bool // tokens of what this server has withheld at others
}

// now is what the server's clock says.
func (s *server) now() time.Time { return s.host.Now(s.w.World) }

// sleep waits for that long, by the server's clock.
func (s *server) sleep(d time.Duration) {
	clock.Sleep(s.ctx, virtual.Clock{W: s.w.World, Scope: s.process}, d)
}

// holds reports whether what is leased to the server is still its to hand out.
func (s *server) holds() bool {
	return s.w.quorum == nil || s.now().Before(s.lessee.until) || s.w.broken == outdated
}

// lease has the execution service under one incarnation after another, for as long as the process lives.
func (s *server) lease(*virtual.Proc) {
	for {
		if err := s.incarnation(); err != nil {
			s.w.Say("%s: the execution service cannot begin yet: %v", s, err)
			s.sleep(time.Second)
		}
	}
}

// incarnation begins one, and runs the service until it ends.
func (s *server) incarnation() error {
	lines := slices.Clone(s.disk.journal)
	under := func(lease uint64) runner.Intake { return execseam.Intake{In: s.intake, Lease: lease} }
	if err := runner.SettleLines(s.ctx, lines, under); err != nil {
		return err
	}
	s.disk.journal = s.disk.journal[len(lines):]
	lease, _, err := s.intake.BeginIncarnation(s.ctx, s.String())
	if err != nil {
		return err
	}
	s.w.Say("%s begins incarnation %d", s, lease)
	life := &virtual.Scope{W: s.w.World, Host: s.host}
	r := newRunners(s, life, lease)
	s.runners, s.lessee.life, s.lessee.until = r, life, time.Time{}
	life.Spawn("renew", func(p *virtual.Proc) { s.renew(p, lease) })
	for {
		changed := s.store.Watch(tables.Lessees, "")
		if s.store.Snapshot().Lessee(lease) == nil {
			break
		}
		clock.Await(s.ctx, virtual.Clock{W: s.w.World, Scope: s.process}, clock.Forever, changed)
	}
	s.w.Say("%s: incarnation %d has ended", s, lease)
	s.runners = nil
	r.end()
	return nil
}

// renew tells the leader again and again that the incarnation lives. From before it asked the server may hand out for a while.
func (s *server) renew(p *virtual.Proc, lease uint64) {
	for {
		until := s.now().Add(leases.Lasts)
		var err error
		switch l := s.member.leader; {
		case s.accepts:
			if !s.lessee.watch.Heard(s.now(), lease) {
				err = drover.Errorf(drover.NotLeader, "it has not begun to lead, or stood still")
			}
		case l < 0 || l == s.number:
			err = drover.Errorf(drover.NotLeader, "No cluster leader")
		default:
			_, err = call(s.w.net, p, question{s.String(), l, leases.Renew, true}, func(_ *virtual.Proc, l *server) (struct{}, error) {
				if l.store.Snapshot().Lessee(lease) == nil {
					return struct{}{}, drover.Errorf(drover.Gone, "incarnation %d has ended", lease)
				}
				if !l.accepts || !l.lessee.watch.Heard(l.now(), lease) {
					return struct{}{}, drover.Errorf(drover.NotLeader, "No cluster leader")
				}
				return struct{}{}, nil
			})
		}
		if err != nil {
			s.sleep(leases.Renew / 4)
			continue
		}
		s.lessee.until = until
		s.sleep(leases.Renew)
	}
}

// watchLessees ends the incarnations of servers that are not heard of, for as long as this one leads.
func (s *server) watchLessees(*virtual.Proc) {
	s.lessee.watch = leases.Watch{}
	s.term.Spawn("beat", func(*virtual.Proc) {
		for {
			s.lessee.watch.Beat(s.now())
			s.sleep(leases.BeatEvery)
		}
	})
	for {
		changed := s.store.Watch(tables.Lessees, "")
		var live []uint64
		for l := range s.store.Snapshot().Lessees() {
			live = append(live, l.Incarnation)
		}
		s.lessee.watch.Beat(s.now())
		due, again := s.lessee.watch.Due(s.now(), live)
		heir := uint64(0)
		if r := s.runners; r != nil && !slices.Contains(due, r.lease) {
			heir = r.lease
		}
		for _, incarnation := range due {
			s.w.Say("%s ends incarnation %d", s, incarnation)
			if err := s.intake.EndIncarnation(s.ctx, incarnation, heir, false); err != nil {
				again = s.now().Add(time.Second)
			}
		}
		clock.Await(s.ctx, virtual.Clock{W: s.w.World, Scope: s.term}, again.Sub(s.now()), changed)
	}
}

// keeper is the server that an allocation's runner is leased to, as this server's state says; -1 if there is none.
func (s *server) keeper(allocID string) int {
	snap := s.store.Snapshot()
	if a := snap.Allocation(allocID); a != nil && a.Lease != 0 {
		if l := snap.Lessee(a.Lease); l != nil {
			return numberOf(l.Server)
		}
	}
	return -1
}

// numberOf is the number of the server with that name.
func numberOf(name string) int {
	n, _ := strconv.Atoi(name[1:]) // it was made of one
	return n
}

// How long a server waits for another to withhold runners, and how long that does so before it asks whether it still is to.
const (
	withholdFor = 3 * time.Second
	heldFor     = time.Minute
)

// withholdAll keeps runners that are about to be stopped from being handed out at all servers that may.
func (s *server) withholdAll(allocIDs []string) (leases []uint64, giveBack func(settled bool), err error) {
	p := s.w.Current
	at, leases := s.holders(allocIDs)
	if s.w.broken == unasked {
		return leases, func(bool) {}, nil
	}
	own, life := func() {}, s.lessee.life
	switch {
	case !at[s.number]:
	case s.runners != nil:
		own = s.runners.withhold(allocIDs)
	default:
		return nil, nil, unavailable("the execution service has not begun")
	}
	delete(at, s.number)
	token, others := s.w.ids.New(), slices.Sorted(maps.Keys(at))
	s.lessee.wants[token] = true
	giveBack = func(settled bool) {
		if settled || life == nil {
			own()
		} else {
			s.settle(life, own)
		}
		delete(s.lessee.wants, token)
		for _, k := range others {
			s.process.Spawn("give back", func(p *virtual.Proc) {
				_, _ = call(s.w.net, p, question{s.String(), k, withholdFor, true}, func(_ *virtual.Proc, o *server) (struct{}, error) {
					o.giveBack(token)
					return struct{}{}, nil
				}) // else it asks
			})
		}
	}
	for _, k := range others {
		_, err = call(s.w.net, p, question{s.String(), k, withholdFor, false}, func(_ *virtual.Proc, o *server) (struct{}, error) {
			return struct{}{}, o.answerWithhold(token, allocIDs)
		})
		if err != nil {
			giveBack(true)
			return nil, nil, drover.Errorf(drover.Unavailable, "a server that may have handed out runners does not answer: %w", err)
		}
	}
	return leases, giveBack, nil
}

// holders are the servers that may hand out some of the runners, and their incarnations.
func (s *server) holders(allocIDs []string) (at map[int]bool, leases []uint64) {
	at, leases = map[int]bool{}, []uint64{0}
	lessees := slices.Collect(s.store.Snapshot().Lessees())
	for _, id := range allocIDs {
		if k := s.keeper(id); k >= 0 {
			at[k] = true
			continue
		}
		for _, l := range lessees { // any of them may be leased it before it is stopped
			at[numberOf(l.Server)] = true
		}
	}
	for _, l := range lessees {
		if at[numberOf(l.Server)] {
			leases = append(leases, l.Incarnation)
		}
	}
	return at, leases
}

// held is what a leader has withheld at a server.
type held struct {
	life *virtual.Scope
	end  func()
}

// answerWithhold withholds runners for the leader.
func (s *server) answerWithhold(token string, allocIDs []string) error {
	r, life := s.runners, s.lessee.life
	if r == nil {
		return drover.Errorf(drover.NotLeader, "the execution service has not begun")
	}
	end := r.withhold(allocIDs)
	pending := false
	r.tell(func(c *runner.Core, _ time.Time) { pending = c.Hold(s.store.Snapshot(), allocIDs) })
	if pending {
		end()
		return unavailable("runners that were handed out are not recorded yet")
	}
	s.lessee.held[token] = held{life, end}
	life.Spawn("overdue", func(p *virtual.Proc) {
		for s.sleep(heldFor); s.lessee.held[token].end != nil; s.sleep(withholdFor) {
			if wanted, err := s.wanted(p, token); err == nil && !wanted {
				s.giveBack(token)
			}
		}
	})
	return nil
}

// wanted asks the leader whether something is still to be withheld.
func (s *server) wanted(p *virtual.Proc, token string) (bool, error) {
	answer := func(_ *virtual.Proc, l *server) (bool, error) {
		if !l.accepts {
			return false, drover.Errorf(drover.NotLeader, "No cluster leader")
		}
		return l.lessee.wants[token], nil
	}
	if l := s.member.leader; !s.accepts && l >= 0 && l != s.number {
		return call(s.w.net, p, question{s.String(), l, withholdFor, true}, answer)
	}
	return answer(p, s)
}

// giveBack ends what answerWithhold began, once this server knows what became of it.
func (s *server) giveBack(token string) {
	if h := s.lessee.held[token]; h.end != nil {
		delete(s.lessee.held, token)
		s.settle(h.life, h.end)
	}
}

// settle calls end once this server's state has all that may become of what was proposed before.
func (s *server) settle(life *virtual.Scope, end func()) {
	if life.Over {
		return
	}
	life.Spawn("settle", func(*virtual.Proc) {
		for {
			if index, _, _ := s.proposeToLeader(s.ctx, &command.Barrier{}); index > 0 && s.store.Index() >= index {
				end()
				return
			}
			s.sleep(time.Second)
		}
	})
}
