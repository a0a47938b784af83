package sim

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/server/execseam"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// runners is the shell of exec/runner's Core in virtual time, as Service is in the product: the loops, the journal on
// the world's disk, and the use cases of control. Between any two events the process may be killed.
type runners struct {
	s       *server
	life    *virtual.Scope // of its loops
	lease   uint64         // of several servers
	over    bool           // nothing is handed out any more
	core    *runner.Core
	synced  bool
	missed  bool           // the state was replaced
	news    []drover.Event // to be looked at
	newsUp  virtual.Signal
	toWrite virtual.Signal
	timerUp virtual.Signal
	waiting map[*runner.Waiter]*virtual.Signal
	line    []*virtual.Signal // the same, in their order
	holders []*virtual.Signal // of those who withhold runners and wait for claims to be recorded
}

// maxWaiting claims wait for runners of an environment; few, so that lines get full.
const maxWaiting = 3

// newRunners starts the execution service in the server's process. Its loops begin only once the journal was read.
func newRunners(s *server, life *virtual.Scope, lease uint64) *runners {
	r := &runners{s: s, life: life, lease: lease, core: runner.NewCore(maxWaiting, lease), waiting: map[*runner.Waiter]*virtual.Signal{}}
	life.Spawn("runners", func(p *virtual.Proc) {
		r.load()
		life.Spawn("record", r.record)
		life.Spawn("idle", r.endIdle)
		r.observe(p)
	})
	return r
}

// tell is Service.tell.
func (r *runners) tell(event func(c *runner.Core, now time.Time)) {
	event(r.core, r.s.host.Now(r.s.w.World))
	e := r.core.Effects()
	for _, w := range e.Served {
		if served := r.waiting[w]; served != nil {
			served.Raise()
		}
	}
	if e.Settled {
		for _, up := range r.holders {
			up.Raise()
		}
		r.holders = nil
	}
	if e.Record {
		r.toWrite.Raise()
	}
	if e.Rearm {
		r.timerUp.Raise()
	}
}

// follow notes what an entry changed; the loop looks at it a little later, on a newer state.
func (r *runners) follow(ev drover.Events) {
	if r == nil {
		return // the log is being replayed
	}
	r.news = append(r.news, ev.Events...)
	r.newsUp.Raise()
}

// observe brings the core up to date with the state, at first and at random with all of it: the product's event stream
// may lose events too.
func (r *runners) observe(p *virtual.Proc) {
	for missed := true; ; missed = r.s.w.Chance(2) || r.missed {
		news := r.news
		r.news, r.missed = nil, false
		r.tell(func(c *runner.Core, now time.Time) {
			if missed {
				c.ReadAll(now, r.state())
			} else {
				c.Observe(now, r.state(), news)
			}
		})
		r.synced = true
		r.newsUp.Wait(p, time.Hour)
		p.Sleep(r.s.w.Between(0, 5*time.Millisecond))
	}
}

// claim hands out a runner. wait is how long the claim stands in line; < 0: not at all.
func (r *runners) claim(p *virtual.Proc, req execution.ClaimRequest) (got execution.Runner, err error) {
	switch {
	case r == nil || r.over || !r.s.holds():
		return got, errOver()
	case !r.synced:
		return got, drover.Errorf(drover.Unavailable, "the execution service is starting")
	}
	var turn runner.Turn
	r.tell(func(c *runner.Core, now time.Time) {
		if !c.Knows(req.Environment) {
			c.ReadEnvironment(now, r.s.store.Snapshot(), req.Environment)
		}
		turn, err = c.Claim(now, req)
	})
	until := r.s.w.Now.Add(req.Wait)
	for err == nil && turn.Waiter != nil {
		served := &virtual.Signal{}
		r.waiting[turn.Waiter] = served
		r.line = append(r.line, served)
		came := served.Wait(p, until.Sub(r.s.w.Now))
		delete(r.waiting, turn.Waiter)
		r.line = slices.DeleteFunc(r.line, func(o *virtual.Signal) bool { return o == served })
		if p.Sleep(r.s.w.Between(0, time.Millisecond)); !came || r.over {
			r.tell(func(c *runner.Core, _ time.Time) { c.Leave(turn.Waiter) })
			if r.over {
				return got, errOver()
			}
			return got, drover.Errorf(drover.Exhausted, "none came")
		}
		r.tell(func(c *runner.Core, now time.Time) { turn, err = c.Accept(now, turn.Waiter) })
	}
	if err != nil {
		return got, err
	}
	failed := r.write(p, runner.Line{Claim: &turn.Handout.Line})
	if failed == nil && (r.over || !r.s.holds()) { // the process may have stood still since
		failed = errOver()
	}
	r.tell(func(c *runner.Core, _ time.Time) { got, err = c.Written(turn.Handout, failed) })
	return got, err
}

// errOver is the error of whoever asks a service that has ended.
func errOver() error { return drover.Errorf(drover.NotLeader, "No cluster leader") }

// end lets nothing be handed out any more.
func (r *runners) end() {
	r.over = true
	r.life.End()
	for _, served := range r.line {
		served.Raise()
	}
}

// release ends a claimed runner.
func (r *runners) release(p *virtual.Proc, runnerID string) (err error) {
	switch {
	case r == nil || r.over:
		return errOver()
	case !r.synced:
		return drover.Errorf(drover.Unavailable, "the execution service is starting")
	}
	var allocID string
	r.tell(func(c *runner.Core, _ time.Time) {
		allocID, err = c.Release(runnerID, drover.Errorf(drover.Gone, "%w", runner.ErrStopped))
	})
	if err == nil {
		r.ended(allocID)
		r.writeRelease(p, allocID, true)
	}
	return err
}

// ended notes that a runner is its claimer's no more, from before it is written down. It was given back, whether or not the
// claimer hears the answer, or it was idle for too long.
func (r *runners) ended(allocID string) {
	if h, ok := r.s.w.clients.handed[allocID]; ok && h.lease == r.lease {
		h.ended = true
		r.s.w.clients.handed[allocID] = h
	}
}

// writeRelease writes a release, which its claimer asked for or not, to the journal and tells the core whether it is there.
func (r *runners) writeRelease(p *virtual.Proc, allocID string, asked bool) {
	err := r.write(p, runner.Line{Release: allocID, Asked: asked})
	r.tell(func(c *runner.Core, _ time.Time) { c.Released(allocID, err == nil) })
}

// write appends to the journal, which has a moment before and after it in which the process may be killed.
func (r *runners) write(p *virtual.Proc, line runner.Line) error {
	line.Lease = r.lease
	p.Sleep(r.s.w.Between(0, time.Millisecond))
	if r.s.w.full && r.s.w.Chance(50) {
		return drover.Errorf(drover.Exhausted, "no space left on device")
	}
	if r.s.w.broken != forgetful {
		r.s.disk.journal = append(r.s.disk.journal, line)
	}
	r.s.w.pass(r.s, p, written)
	p.Sleep(r.s.w.Between(0, time.Millisecond))
	return nil
}

// withhold is Service.Withhold.
func (r *runners) withhold(allocIDs []string) (giveBack func()) {
	giveBack = func() {
		r.tell(func(c *runner.Core, now time.Time) { c.GiveBack(now, r.s.store.Snapshot(), allocIDs) })
	}
	held := false
	defer func() {
		if !held {
			giveBack() // the term ended
		}
	}()
	r.tell(func(c *runner.Core, _ time.Time) { c.Withhold(allocIDs) })
	for until := r.s.w.Now.Add(2 * time.Second); ; {
		pending := false
		r.tell(func(c *runner.Core, _ time.Time) { pending = c.Hold(r.s.store.Snapshot(), allocIDs) })
		left := until.Sub(r.s.w.Now)
		if !pending || left <= 0 {
			held = true
			return giveBack
		}
		up := &virtual.Signal{}
		r.holders = append(r.holders, up)
		up.Wait(r.s.w.Current, left)
	}
}

// endIdle releases runners whose time is over, and sleeps until the next of them. While the server's leases do not hold, another may
// have taken them over, and have them in use.
func (r *runners) endIdle(p *virtual.Proc) {
	for {
		if late, ok := r.core.NextDeadline(); ok && !r.s.now().Before(late) && !r.s.holds() {
			r.timerUp.Wait(p, time.Second)
			continue
		}
		var due []string
		wait := time.Hour
		r.tell(func(c *runner.Core, now time.Time) { due = c.Expire(now.Add(r.s.w.broken.early())) })
		for _, id := range due {
			r.ended(id)
			r.writeRelease(p, id, false)
		}
		if next, ok := r.core.NextDeadline(); ok {
			wait = r.s.host.Lasts(next.Sub(r.s.now()) - r.s.w.broken.early())
		}
		r.timerUp.Wait(p, wait)
	}
}

// load takes up what an earlier process handed out and did not record.
func (r *runners) load() {
	lines := slices.Clone(r.s.disk.journal)
	r.tell(func(c *runner.Core, now time.Time) {
		for _, id := range c.Load(now, r.s.store.Snapshot(), lines) {
			r.forget(id, false)
		}
	})
}

// record proposes claims and releases.
func (r *runners) record(p *virtual.Proc) {
	wait := 20 * time.Millisecond
	for {
		r.toWrite.Wait(p, time.Hour)
		if _, urgent := r.core.Activity(); !urgent {
			p.Sleep(r.s.w.Between(0, 200*time.Millisecond))
		}
		for {
			var b runner.Batch
			r.tell(func(c *runner.Core, _ time.Time) { b = c.Batch() })
			for _, id := range b.Dropped {
				r.forget(id, true)
			}
			if b.Empty() {
				break
			}
			claimed, released := r.recordClaims(b.Claims, b.Demands), r.recordReleases(b.Releases)
			if claimed && released {
				wait = 20 * time.Millisecond
				continue
			}
			p.Sleep(wait)
			wait = min(2*wait, 2*time.Second)
		}
	}
}

// recordClaims writes claims and the demand of pools through raft, and reports whether that worked; else the core has
// them again. A recorded claim leaves the journal. Before and after the proposal the process may be killed.
func (r *runners) recordClaims(lines []runner.AllocClaim, demands []runner.Demand) bool {
	if len(lines)+len(demands) == 0 {
		return true
	}
	if len(lines) > 0 {
		r.s.w.pass(r.s, nil, proposed)
	}
	errs, err := r.intake().ClaimRunners(r.s.w.ctx, lines, demands)
	if err != nil {
		r.tell(func(c *runner.Core, _ time.Time) { c.NotRecorded(runner.Batch{Claims: lines, Demands: demands}) })
		return false
	}
	if len(lines) > 0 {
		r.s.w.pass(r.s, r.s.w.Current, recorded)
	}
	r.tell(func(c *runner.Core, _ time.Time) { c.ClaimsRecorded(lines, errs) })
	for i := range lines {
		r.forget(lines[i].AllocID, true)
	}
	return true
}

// intake records what is done under the lease.
func (r *runners) intake() runner.Intake { return execseam.Intake{In: r.s.intake, Lease: r.lease} }

// recordReleases stops the allocations of released runners, and reports whether all were recorded. From the first that
// failed on the core has them again.
func (r *runners) recordReleases(all []runner.Releases) bool {
	for i, of := range all {
		if err := r.intake().ReleaseRunners(r.s.w.ctx, of); err != nil {
			r.tell(func(c *runner.Core, _ time.Time) { c.NotRecorded(runner.Batch{Releases: all[i:]}) })
			return false
		}
		r.tell(func(c *runner.Core, _ time.Time) { c.ReleasesRecorded(of.AllocIDs) })
		for _, id := range of.AllocIDs {
			r.forget(id, false)
		}
	}
	return true
}

// forget takes lines out of the journal: a recorded claim's, or all of an allocation that the state knows as stopped.
func (r *runners) forget(allocID string, claimOnly bool) {
	d := r.s.disk
	d.journal = slices.DeleteFunc(d.journal, func(l runner.Line) bool {
		return l.Claim != nil && l.Claim.AllocID == allocID || !claimOnly && l.Release == allocID
	})
}
