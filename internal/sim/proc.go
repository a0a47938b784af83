package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// proc is a loop: a coroutine that gives the goroutine back when it waits.
type proc struct {
	w     *World
	host  *host
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

// scope is what ends together: a server process, a term of leadership, an agent.
type scope struct {
	w     *World
	host  *host // of its process; nil: one that never stands still and whose clock is right
	procs []*proc
	over  bool
}

// spawn starts f as a proc of the scope, as an event.
func (s *scope) spawn(name string, f func(p *proc)) {
	p := &proc{w: s.w, host: s.host, name: name}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer func() {
			p.done = true
			if r := recover(); r != nil {
				switch r.(type) {
				case killed:
				case breach:
					panic(r)
				default:
					panic(fmt.Sprintf("%v\n%s", r, debug.Stack()))
				}
			}
		}()
		f(p)
	})
	s.procs = slices.DeleteFunc(s.procs, func(p *proc) bool { return p.done })
	s.procs = append(s.procs, p)
	p.wakeAfter(0)
}

// end ends all procs of the scope where they wait. It is called by events, not by procs.
func (s *scope) end() {
	s.over = true
	for _, p := range s.procs {
		p.done = true
		p.stop()
	}
	s.procs = nil
}

// after calls f later unless the scope is over by then.
func (s *scope) after(d time.Duration, label string, f func()) {
	s.w.after(d, label, func() {
		s.host.run(func() {
			if !s.over {
				f()
			}
		})
	})
}

// wakeAfter ends the present wait after d, unless something else does before.
func (p *proc) wakeAfter(d time.Duration) {
	turn := p.waits
	p.w.after(d, p.name, func() {
		p.host.run(func() {
			if !p.done && p.waits == turn {
				p.resume()
			}
		})
	})
}

// resume lets the process run until it parks again. Other wake-ups that were planned for this wait no longer count.
func (p *proc) resume() {
	p.waits++
	before := p.w.current
	p.w.current = p
	defer func() { p.w.current = before }()
	p.next()
}

// park waits until somebody wakes it.
func (p *proc) park() {
	if !p.yield(struct{}{}) {
		panic(killed{})
	}
}

// sleep waits.
func (p *proc) sleep(d time.Duration) {
	p.wakeAfter(d)
	p.park()
}

// await waits until one of the signals is ready, which it receives, at most for d.
func (p *proc) await(d time.Duration, signals ...<-chan struct{}) {
	p.watch = signals
	p.w.watchers = append(p.w.watchers, p)
	if d != clock.Forever {
		p.wakeAfter(d)
	}
	p.park()
	p.watch = nil
	p.w.watchers = slices.DeleteFunc(p.w.watchers, func(q *proc) bool { return q == p })
}

// poke wakes those of whom a signal is ready.
func (w *World) poke() {
	w.watchers = slices.DeleteFunc(w.watchers, func(p *proc) bool { return p.done })
	for _, p := range w.watchers {
		for _, c := range p.watch {
			select {
			case <-c:
				p.watch = nil
				p.wakeAfter(0)
			default:
				continue
			}
			break
		}
	}
}

// signal is what a loop waits for; raising it again before somebody waited is one signal.
type signal struct {
	raised bool
	waiter *proc
}

// raise wakes the process that waits, or is remembered until one waits.
func (s *signal) raise() {
	s.raised = true
	if s.waiter != nil {
		s.waiter.wakeAfter(0)
	}
}

// wait returns when the signal is raised, or after d; it reports the former.
func (s *signal) wait(p *proc, d time.Duration) bool {
	if !s.raised {
		s.waiter = p
		p.wakeAfter(d)
		p.park()
		s.waiter = nil
	}
	was := s.raised
	s.raised = false
	return was
}
