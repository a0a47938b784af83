package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/tables"
)

// lessee is what a server is among others that hand out runners. This file is server/lessee, whose loops select over channels.
type lessee struct {
	life  *scope       // of the execution service; nil before the first
	until time.Time    // it may hand out, by its own clock
	watch leases.Watch // while it leads
	held  map[string]func()
}

// now is what the server's clock says.
func (s *server) now() time.Time { return s.host.now(s.w) }

// sleep waits for that long, by the server's clock.
func (s *server) sleep(d time.Duration) { clock.Sleep(s.ctx, simClock{s.w, s.process}, d) }

// holds reports whether what is leased to the server is still its to hand out.
func (s *server) holds() bool {
	return s.w.quorum == nil || s.now().Before(s.lessee.until) || s.w.broken == outdated
}

// lease has the execution service under one incarnation after another, for as long as the process lives.
func (s *server) lease(*proc) {
	for {
		if err := s.incarnation(); err != nil {
			s.w.say("%s: the execution service cannot begin yet: %v", s, err)
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
	s.w.say("%s begins incarnation %d", s, lease)
	life := &scope{w: s.w, host: s.host}
	r := newRunners(s, life, lease)
	s.runners, s.lessee.life, s.lessee.until = r, life, time.Time{}
	life.spawn("renew", func(p *proc) { s.renew(p, lease) })
	for {
		changed := s.store.Watch(tables.Lessees, "")
		if s.store.Snapshot().Lessee(lease) == nil {
			break
		}
		clock.Await(s.ctx, simClock{s.w, s.process}, clock.Forever, changed)
	}
	s.w.say("%s: incarnation %d has ended", s, lease)
	s.runners = nil
	r.end()
	return nil
}

// renew tells the leader again and again that the incarnation lives. From before it asked the server may hand out for a while.
func (s *server) renew(p *proc, lease uint64) {
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
			_, err = call(s.w.net, p, question{s.String(), l, leases.Renew, true}, func(_ *proc, l *server) (struct{}, error) {
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
func (s *server) watchLessees(*proc) {
	s.lessee.watch = leases.Watch{}
	s.term.spawn("beat", func(*proc) {
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
			s.w.say("%s ends incarnation %d", s, incarnation)
			if err := s.intake.EndIncarnation(s.ctx, incarnation, heir, false); err != nil {
				again = s.now().Add(time.Second)
			}
		}
		clock.Await(s.ctx, simClock{s.w, s.term}, again.Sub(s.now()), changed)
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

// How long a server waits for another to withhold runners, and how long that does so at most.
const (
	withholdFor = 3 * time.Second
	heldFor     = time.Minute
)

// withholdAll keeps runners that are about to be stopped from being handed out at all servers.
func (s *server) withholdAll(allocIDs []string) (giveBack func(), err error) {
	p, at := s.w.current, map[int][]string{}
	for _, id := range allocIDs {
		if k := s.keeper(id); k >= 0 {
			at[k] = append(at[k], id)
		}
	}
	own := func() {}
	if ids := at[s.number]; s.runners != nil && len(ids) > 0 {
		own = s.runners.withhold(ids)
	}
	delete(at, s.number)
	token, others := s.w.ids.New(), slices.Sorted(maps.Keys(at))
	giveBack = func() {
		own()
		for _, k := range others {
			s.process.spawn("give back", func(p *proc) {
				_, _ = call(s.w.net, p, question{s.String(), k, withholdFor, true}, func(_ *proc, o *server) (struct{}, error) {
					o.giveBack(token)
					return struct{}{}, nil
				}) // else it does so by itself
			})
		}
	}
	for _, k := range others {
		_, err = call(s.w.net, p, question{s.String(), k, withholdFor, false}, func(_ *proc, o *server) (struct{}, error) {
			return struct{}{}, o.answerWithhold(token, at[k])
		})
		if err != nil {
			giveBack()
			return nil, drover.Errorf(drover.Unavailable, "a server that may have handed out runners does not answer: %w", err)
		}
	}
	return giveBack, nil
}

// answerWithhold withholds runners for the leader.
func (s *server) answerWithhold(token string, allocIDs []string) error {
	r := s.runners
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
	if s.lessee.held == nil {
		s.lessee.held = map[string]func(){}
	}
	s.lessee.held[token] = end
	s.process.after(heldFor, "held", func() { s.giveBack(token) })
	return nil
}

// giveBack ends what answerWithhold began.
func (s *server) giveBack(token string) {
	if end := s.lessee.held[token]; end != nil {
		delete(s.lessee.held, token)
		end()
	}
}
