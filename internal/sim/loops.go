package sim

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
)

// This file is the leader's other loops around its own deciders.

func (s *server) cancelNeedless(p *proc) {
	var left []*drover.Evaluation
	for {
		if len(left) == 0 {
			s.needless.wait(p, time.Hour)
		} else {
			p.sleep(retryDelay)
		}
		left = append(left, s.broker.Superseded()...)
		left = append(left, s.blocked.Duplicates()...)
		if len(left) == 0 {
			continue
		}
		if s.storeEvals(leader.Canceled(s.store.Snapshot(), left, s.w.now.UnixNano())) == nil {
			left = nil
		}
	}
}

func (s *server) watchHeartbeats(p *proc) {
	for {
		ids := s.alive.Due(s.w.now)
		for _, id := range ids {
			if away := leader.Away(s.store.Snapshot(), id, s.w.now); away > 0 {
				s.alive.Set(id, s.w.now.Add(away))
			}
		}
		if c := leader.Down(s.store.Snapshot(), ids, s.maker()); len(c.Nodes) > 0 {
			for _, n := range c.Nodes {
				s.w.say("node %s missed its heartbeat: %s", short(n.NodeID), n.Status)
			}
			if _, _, err := s.Propose(s.w.ctx, c); err != nil {
				for _, id := range ids {
					s.Heartbeat(id)
				}
			}
		}
		wait := time.Hour
		if next, ok := s.alive.Next(); ok {
			wait = next.Sub(s.w.now)
		}
		s.beats.wait(p, wait)
	}
}

// watchSchedulerConfig has everything blocked looked at again when the configuration changed.
func (s *server) watchSchedulerConfig(p *proc) {
	for {
		seen := s.store.Snapshot().TableIndex(store.TableSchedulerConfig)
		p.await(time.Hour, s.store.Watch(store.TableSchedulerConfig, ""))
		if s.store.Snapshot().TableIndex(store.TableSchedulerConfig) > seen {
			s.enter(func(time.Time) { s.blocked.WakeAll() })
			s.retime()
		}
	}
}

func (s *server) watchDrains(p *proc) {
	for {
		nodes := s.store.Watch(store.TableNodes, "")
		allocs := s.store.Watch(store.TableAllocs, "")
		snap, wait, draining := s.store.Snapshot(), time.Hour, false
		for n := range snap.Nodes("") {
			if n.DrainStrategy == nil {
				continue
			}
			draining = true
			c, next := leader.DrainStep(snap, n, s.w.now, s.maker())
			if c != nil {
				if _, _, err := s.Propose(s.w.ctx, c); err != nil {
					wait = min(wait, retryDelay)
				}
				snap = s.store.Snapshot()
			}
			wait = min(wait, next)
		}
		if !draining {
			allocs = nil
		}
		p.await(wait, nodes, allocs)
	}
}

func (s *server) watchDeployments(p *proc) {
	var watched leader.Rollouts
	for {
		changed := s.store.Watch(store.TableDeployments, "")
		snap, wait := s.store.Snapshot(), time.Hour
		for d := range snap.Deployments("*", "") {
			c, due := watched.Step(snap, d, s.w.now, s.maker())
			if c == nil {
				wait = min(wait, due)
				continue
			}
			s.w.say("deployment %s of %s: %s", short(d.ID), d.JobID, c.Kind())
			if _, _, err := s.Propose(s.w.ctx, c); err != nil {
				watched.Forget(d.ID)
				wait = min(wait, retryDelay)
			}
		}
		p.await(wait, changed)
	}
}

func (s *server) collect(p *proc) {
	for {
		p.sleep(2 * time.Minute)
		_ = s.reap(s.w.ctx, leader.GCConfig{Evals: time.Minute, Jobs: 2 * time.Minute, Nodes: time.Hour, Deployments: time.Minute})
	}
}

func (s *server) reap(ctx context.Context, ages leader.GCConfig) error {
	for _, c := range leader.Garbage(s.store.Snapshot(), s.w.now, ages) {
		if _, _, err := s.Propose(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
