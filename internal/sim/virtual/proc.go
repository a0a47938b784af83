package virtual

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// Proc is a loop: a coroutine that gives the goroutine back when it waits.
type Proc struct {
	w     *World
	host  *Host
	name  string
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	waits uint64 // counts the waits; an older wake-up means nothing
	watch []<-chan struct{}
	done  bool
}

// killed unwinds a proc whose process ended.
type killed struct{}

// Scope is what ends together: a server process, a term of leadership, an agent.
type Scope struct {
	W     *World
	Host  *Host // of its process; nil: one that never stands still and whose clock is right
	procs []*Proc
	Over  bool
}

// Spawn starts f as a proc of the scope, as an event; not if the scope is over, as nothing would end it.
func (s *Scope) Spawn(name string, f func(p *Proc)) {
	if s.Over {
		return
	}
	p := &Proc{w: s.W, host: s.Host, name: name}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer func() {
			p.done = true
			if r := recover(); r != nil {
				switch r.(type) {
				case killed:
				case Breach:
					panic(r)
				default:
					panic(fmt.Sprintf("%v\n%s", r, debug.Stack()))
				}
			}
		}()
		f(p)
	})
	s.procs = slices.DeleteFunc(s.procs, func(p *Proc) bool { return p.done })
	s.procs = append(s.procs, p)
	p.WakeAfter(0)
}

// End ends all procs of the scope where they wait. It is called by events, not by procs.
func (s *Scope) End() {
	s.Over = true
	for _, p := range s.procs {
		p.done = true
		p.stop()
	}
	s.procs = nil
}

// After calls f later unless the scope is over by then.
func (s *Scope) After(d time.Duration, label string, f func()) {
	s.W.After(d, label, func() {
		s.Host.run(func() {
			if !s.Over {
				f()
			}
		})
	})
}

// WakeAfter ends the present wait after d, unless something else does before.
func (p *Proc) WakeAfter(d time.Duration) {
	turn := p.waits
	p.w.After(d, p.name, func() {
		p.host.run(func() {
			if !p.done && p.waits == turn {
				p.resume()
			}
		})
	})
}

// resume lets the process run until it parks again. Other wake-ups that were planned for this wait no longer count.
func (p *Proc) resume() {
	p.waits++
	before := p.w.Current
	p.w.Current = p
	defer func() { p.w.Current = before }()
	p.next()
}

// Park waits until somebody wakes it.
func (p *Proc) Park() {
	if !p.yield(struct{}{}) {
		panic(killed{})
	}
}

// Sleep waits.
func (p *Proc) Sleep(d time.Duration) {
	p.WakeAfter(d)
	p.Park()
}

// await waits until one of the signals is ready, which it receives, at most for d.
func (p *Proc) await(d time.Duration, signals ...<-chan struct{}) {
	p.watch = signals
	p.w.watchers = append(p.w.watchers, p)
	if d != clock.Forever {
		p.WakeAfter(d)
	}
	p.Park()
	p.watch = nil
	p.w.watchers = slices.DeleteFunc(p.w.watchers, func(q *Proc) bool { return q == p })
}

// poke wakes those of whom a signal is ready.
func (w *World) poke() {
	w.watchers = slices.DeleteFunc(w.watchers, func(p *Proc) bool { return p.done })
	for _, p := range w.watchers {
		for _, c := range p.watch {
			select {
			case <-c:
				p.watch = nil
				p.WakeAfter(0)
			default:
				continue
			}
			break
		}
	}
}

// Signal is what a loop waits for; raising it again before somebody waited is one signal.
type Signal struct {
	raised bool
	waiter *Proc
}

// Raise wakes the process that waits, or is remembered until one waits.
func (s *Signal) Raise() {
	s.raised = true
	if s.waiter != nil {
		s.waiter.WakeAfter(0)
	}
}

// Wait returns when the signal is raised, or after d; it reports the former.
func (s *Signal) Wait(p *Proc, d time.Duration) bool {
	if !s.raised {
		s.waiter = p
		p.WakeAfter(d)
		p.Park()
		s.waiter = nil
	}
	was := s.raised
	s.raised = false
	return was
}
