package simulator

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// decideIn plans a decision unless one comes sooner.
func (s *Sim) decideIn(d time.Duration) {
	at := s.now + int64(d)
	if s.wakeAt >= 0 && s.wakeAt <= at {
		return
	}
	s.wakeAt = at
	s.at(at, func() {
		if s.wakeAt == at {
			s.wakeAt = -1
			s.decide()
		}
	})
}

// decide runs one decision of the core with the work that waits now, begins what it wants, and plans the next decision.
// It also notes which limits keep work waiting, for Result.Stopped.
func (s *Sim) decide() {
	s.result.Decisions++
	s.core.SetDemand(s.cfg.Policy.NodePool, s.demand())
	wake := s.core.Decide(s.time())
	clear(s.stopped)
	for _, w := range s.core.Waiting(s.cfg.Policy.Name) {
		if w.Limit != "" {
			if s.stopped == nil {
				s.stopped = map[string]int{}
			}
			s.stopped[w.Limit] += w.Count - w.Placed - w.Bought
		}
	}
	s.flush()
	if !wake.IsZero() {
		s.decideIn(max(time.Duration(s.ns(wake)-s.now), time.Millisecond))
	}
}

// flush begins what the core wants.
func (s *Sim) flush() {
	for list := s.core.Effects(); len(list) > 0; list = s.core.Effects() {
		for k := range list {
			s.perform(&list[k])
		}
	}
}

// answer tells the core something later, if it still lives then.
func (s *Sim) answer(after time.Duration, tell func()) {
	epoch := s.epoch
	s.in(after, func() {
		if s.epoch == epoch {
			tell()
			s.flush()
			s.decideIn(s.cfg.Coalesce)
		}
	})
}

// perform does outside what the core wants.
func (s *Sim) perform(e *pool.Effect) {
	eff := *e
	switch eff.Kind {
	case pool.EffectRecord:
		epoch := s.epoch
		s.in(2*time.Millisecond, func() {
			for _, in := range eff.Intents {
				s.intents[in.ID] = in
			}
			if s.epoch == epoch {
				s.core.Recorded(s.time(), &eff, nil)
				s.flush()
			}
		})
	case pool.EffectForget:
		for _, in := range eff.Intents {
			delete(s.intents, in.ID)
		}
	case pool.EffectCreate:
		s.result.ask(time.Duration(s.now), len(eff.Request.Intents))
		made, took, err := s.cloud.Create(s.time(), eff.Request)
		s.checkCreate()
		s.watchCloud()
		s.answer(took, func() {
			s.core.Created(s.time(), eff.Request, made, err)
			if err != nil || s.core.CreatesDeferred() {
				s.decideIn(0)
			}
		})
	case pool.EffectDestroy:
		s.checkDestroy(&eff)
		took, err := s.cloud.Destroy(s.time(), eff.ProviderID)
		_, runs := s.cloud.Size(eff.ProviderID)
		if n := s.byCloud[eff.ProviderID]; n != nil && !runs {
			s.dies(n)
		}
		s.answer(took, func() { s.core.Destroyed(s.time(), eff.Instance, err) })
	case pool.EffectTag:
		took, err := s.cloud.SetTags(s.time(), eff.ProviderID, eff.Tags)
		s.answer(took, func() { s.core.Tagged(s.time(), err) })
	case pool.EffectList:
		s.listPage("", nil, 0)
	case pool.EffectDrain, pool.EffectCordon, pool.EffectUndrain:
		s.answer(50*time.Millisecond, func() { s.setDrain(eff.Instance, eff.Kind != pool.EffectUndrain) })
	}
}

// listPage reads a list from the given page on, and tells the core all at once after the time that the calls take
// together. After a failed page the core gets what came before it, as from the real provider.
func (s *Sim) listPage(page string, so []provider.Machine, took time.Duration) {
	for {
		list, next, t, err := s.cloud.List(s.time(), page)
		so, took, page = append(so, list...), took+t, next
		if err != nil || next == "" {
			s.answer(took, func() { s.core.Listed(s.time(), so, err == nil, err) })
			return
		}
	}
}

// setDrain does what control does for Nodes.Drain, Cordon and Undrain. Machines that are gone meanwhile are ignored.
func (s *Sim) setDrain(intent string, on bool) {
	if n := s.nodes[intent]; n != nil && n.up {
		n.draining = on
		s.free.move(n)
		s.report(n)
		s.fill(n)
	}
}

// watchCloud plans to look when the next thing happens in the cloud by itself.
func (s *Sim) watchCloud() {
	next := s.cloud.Next()
	if next.IsZero() {
		return
	}
	at := s.ns(next)
	if s.wakeMe >= 0 && s.wakeMe <= at {
		return
	}
	s.wakeMe = at
	s.at(at, func() {
		if s.wakeMe != at {
			return
		}
		s.wakeMe = -1
		for _, h := range s.cloud.Advance(s.time()) {
			s.happens(h.Kind, h.ID, h.Intent, h.Until)
		}
		s.watchCloud()
	})
}

// happens takes over what the cloud did by itself: a machine booted, will be taken back, or ended.
func (s *Sim) happens(kind, cloudID, intent string, until time.Time) {
	n := s.byCloud[cloudID]
	switch kind {
	// From the boot of the machine to the first call of its agent it takes 0.2 to 1 s.
	case "booted":
		s.in(time.Duration(200+s.rng.IntN(800))*time.Millisecond, func() { s.boots(cloudID, intent) })
	case "notice":
		if n != nil {
			n.taken = true
		}
		s.core.Interrupted(s.time(), intent, until)
		s.decideIn(0)
	default:
		if n != nil {
			s.dies(n)
		}
	}
}

// boots lets the agent call home.
func (s *Sim) boots(cloudID, intent string) {
	size, alive := s.cloud.Size(cloudID)
	if !alive || s.byCloud[cloudID] != nil {
		return
	}
	n := &node{intent: intent, cloud: cloudID, id: fmt.Sprint("node-", cloudID), size: size, free: size, up: true, bucket: -1, epoch: s.epoch}
	s.byCloud[cloudID] = n
	s.callHome(n)
	if s.cfg.Flaps > 0 {
		s.flapLater(n)
	}
	if s.cfg.Halves > 0 {
		s.in(time.Duration(s.rng.ExpFloat64()/s.cfg.Halves*float64(time.Hour)), func() { s.halfDie(n) })
	}
	if s.cfg.Ghosts > 0 && s.rng.Float64() < s.cfg.Ghosts {
		s.in(time.Duration(s.rng.IntN(600))*time.Second, func() { s.ghost(n) })
	}
}

// callHome registers the agent; one that the core does not know, or whose place is taken, tries again later.
func (s *Sim) callHome(n *node) {
	if !n.up {
		return
	}
	if err := s.core.Registered(s.time(), n.intent, n.id); err != nil {
		n.draining = true // control gives no work to it
		s.free.move(n)
		if drover.CodeOf(err) == drover.NotFound {
			s.in(10*time.Second, func() { s.callHome(n) })
		}
		s.decideIn(s.cfg.Coalesce)
		return
	}
	s.isBack(n)
	if s.nodes[n.intent] != n {
		s.nodes[n.intent] = n
		n.draining = false
	}
	if i, known := s.core.Instance(n.intent); known && (i.State == fleet.InstanceDestroying || i.State == fleet.InstanceDraining) {
		n.draining = true // control lets it in as one that is drained
	}
	s.free.move(n)
	s.report(n)
	s.fill(n)
	s.decideIn(s.cfg.Coalesce)
}

// dies ends a machine: control notices after some time, and its work waits again.
func (s *Sim) dies(n *node) {
	if !n.up {
		return
	}
	n.up = false
	s.isBack(n)
	s.free.drop(n)
	lost := append([]int32(nil), n.tasks...)
	s.in(10*time.Second, func() {
		for _, t := range lost {
			s.leave(t, n)
			s.tasks[t].readyAt = s.now
			s.result.Redone++
			if o := s.free.best(s.tasks[t].Each); o != nil {
				s.begin(t, o)
			} else {
				s.wait(t)
			}
		}
		s.core.Lost(s.time(), n.id, 0)
		delete(s.byCloud, n.cloud)
		if s.nodes[n.intent] == n {
			delete(s.nodes, n.intent)
		}
		s.decideIn(s.cfg.Coalesce)
	})
	for _, t := range lost { // what would have ended meanwhile did not
		s.tasks[t].run++
	}
}

// isBack notes that a machine from before a restart called home, or does not live any more.
func (s *Sim) isBack(n *node) {
	if n.epoch == s.epoch {
		return
	}
	n.epoch = s.epoch
	if s.missed--; s.missed == 0 {
		s.result.Adopted = time.Duration(s.now - s.restarted)
	}
}

// flapLater makes the agent silent at a random time, for up to two minutes, and then again. Its work goes on meanwhile.
func (s *Sim) flapLater(n *node) {
	s.in(time.Duration(s.rng.ExpFloat64()/s.cfg.Flaps*float64(time.Hour)), func() {
		if !n.up {
			return
		}
		n.silent = true
		s.core.Lost(s.time(), n.id, len(n.tasks))
		s.in(time.Duration(s.rng.IntN(120))*time.Second, func() {
			n.silent = false
			if n.up {
				s.report(n)
				s.flapLater(n)
			}
		})
	})
}

// restart kills the server: what it knew is lost but for the log, and every agent calls again.
func (s *Sim) restart() {
	s.newCore()
	s.restarted, s.missed = s.now, 0
	for _, n := range s.byCloud {
		if n.up {
			s.missed++
		}
	}
	var intents []fleet.Durable
	for _, id := range sortedKeys(s.intents) {
		intents = append(intents, s.intents[id])
	}
	s.core.Restore(s.time(), intents)
	for _, id := range sortedKeys(s.byCloud) {
		n := s.byCloud[id]
		s.in(time.Duration(s.rng.IntN(5000))*time.Millisecond, func() { s.callHome(n) })
	}
	s.wakeAt = -1
	s.decideIn(0)
}
