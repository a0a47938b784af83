package simulator

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// task is a piece of work under way.
type task struct {
	*Task
	class   int32
	run     int32 // counts starts: an end of an earlier start is void
	node    *node // nil while it waits or is done
	done    bool
	readyAt int64 // since when it waits
}

// queue is the waiting tasks of one size and priority, oldest first.
type queue struct {
	each     drover.Capacity
	priority int
	tasks    []int32
	head     int
}

// len is how many tasks wait.
func (q *queue) len() int { return len(q.tasks) - q.head }

// pop removes the task that has waited longest.
func (q *queue) pop() int32 {
	t := q.tasks[q.head]
	q.head++
	if q.head > 1024 && q.head*2 > len(q.tasks) {
		q.tasks = append(q.tasks[:0], q.tasks[q.head:]...)
		q.head = 0
	}
	return t
}

// node is a machine's agent.
type node struct {
	intent, cloud, id string
	size, free        drover.Capacity
	tasks             []int32
	up, draining      bool
	taken             bool // the cloud gave notice, or took it
	silent            bool
	half              bool // its agent lives, its work does not
	broken            bool // and its run probe says so
	epoch             int  // of the core that it called last
	bucket, at        int  // in the scheduler's index; -1 = not in it
}

// arrive starts the task at once if a node has room for it, as the scheduler would, and else lets it wait.
func (s *Sim) arrive(t int32) {
	s.tasks[t].readyAt = s.now
	if n := s.free.best(s.tasks[t].Each); n != nil {
		s.begin(t, n)
		return
	}
	s.wait(t)
}

// wait puts the task into the queue of its class and has the fleet decide soon.
func (s *Sim) wait(t int32) {
	tk := &s.tasks[t]
	if tk.class < 0 {
		tk.class = s.classOf(tk.Task)
	}
	s.waiting[tk.class].tasks = append(s.waiting[tk.class].tasks, t)
	s.waits++
	s.decideIn(s.cfg.Burst)
}

// classOf returns the queue of tasks of this size and priority; it makes one if there is none. A search is enough for
// the few classes of a workload.
func (s *Sim) classOf(t *Task) int32 {
	for i := range s.waiting {
		if s.waiting[i].each == t.Each && s.waiting[i].priority == t.Priority {
			return int32(i)
		}
	}
	s.waiting = append(s.waiting, queue{each: t.Each, priority: t.Priority})
	return int32(len(s.waiting) - 1)
}

// begin starts a task on a node with room.
func (s *Sim) begin(t int32, n *node) {
	tk := &s.tasks[t]
	s.must(tk.node == nil && !tk.done, "task %d is started twice", t)
	s.must(n.up && !n.draining, "task %d is started on a node that takes none", t)
	tk.node = n
	tk.run++
	n.tasks = append(n.tasks, t)
	n.free = n.free.Sub(tk.Each)
	s.must(n.free.CPU >= 0 && n.free.MemoryMB >= 0, "node %s is overfull", n.id)
	s.free.move(n)
	s.running++
	s.result.Waited += time.Duration(s.now - tk.readyAt)
	if tk.run == 1 {
		s.result.wait(time.Duration(s.now - tk.readyAt))
	}
	s.events.push(event{at: s.now + int64(tk.Run), task: t, run: tk.run})
	s.report(n)
}

// taskEnds ends a task, unless its event belongs to a run that was lost with its machine.
func (s *Sim) taskEnds(t, run int32) {
	tk := &s.tasks[t]
	if tk.run != run || tk.node == nil {
		return
	}
	s.must(!tk.done, "task %d ends twice", t)
	n := tk.node
	tk.done = true
	s.done++
	s.leave(t, n)
	s.report(n)
	s.fill(n)
}

// leave takes the task off its node and gives the room back. The caller decides whether the task is done or waits
// again.
func (s *Sim) leave(t int32, n *node) {
	tk := &s.tasks[t]
	tk.node = nil
	s.running--
	for i, o := range n.tasks {
		if o == t {
			n.tasks[i] = n.tasks[len(n.tasks)-1]
			n.tasks = n.tasks[:len(n.tasks)-1]
			break
		}
	}
	n.free = n.free.Add(tk.Each)
	s.free.move(n)
}

// fill gives waiting tasks to a node.
func (s *Sim) fill(n *node) {
	if s.waits == 0 || n.draining || n.half || !n.up {
		return
	}
	for i := range s.waiting {
		q := &s.waiting[i]
		for q.len() > 0 {
			if ok, _ := q.each.Fits(n.free); !ok {
				break
			}
			s.waits--
			s.begin(q.pop(), n)
		}
	}
}

// demand is what waits, as control would tell it.
func (s *Sim) demand() (list []fleet.DemandClass) {
	for i := range s.waiting {
		q := &s.waiting[i]
		if q.len() > 0 {
			oldest := s.tasks[q.tasks[q.head]].readyAt
			list = append(list, fleet.DemandClass{
				Name: "tasks", NodePool: s.cfg.Policy.NodePool, Each: q.each, Count: q.len(), Priority: q.priority,
				Since: s.cfg.Start.Add(time.Duration(oldest)),
			})
		}
	}
	return list
}

// report tells the core what runs on the node.
func (s *Sim) report(n *node) {
	if !n.up || n.silent {
		return
	}
	r := pool.Report{Ready: true, Used: n.size.Sub(n.free), Work: len(n.tasks), Drained: n.draining}
	if n.broken {
		r.Broken = "it starts nothing"
	}
	s.core.Reported(s.time(), n.id, r)
	if len(n.tasks) <= 1 || n.draining || s.waits > 0 {
		s.decideIn(s.cfg.Coalesce)
	}
}
