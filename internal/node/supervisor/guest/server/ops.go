package server

import (
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// open starts what a channel asks for. It must not block: what takes time gets a goroutine.
func (c *conn) open(ch channel.Channel, op wire.Op, p []byte, fds []int) {
	// Only these three expect descriptors. What comes with another request would stay open until the process ends.
	if op != wire.OpExec && op != wire.OpTaskStart && op != wire.OpReuse {
		process.CloseAll(fds)
	}
	d := &wire.Decoder{B: append([]byte(nil), p...)} // p is only lent
	switch op {
	case wire.OpExec:
		x, err := wire.DecodeExec(d.B)
		if err != nil {
			process.CloseAll(fds)
			ch.Answer(nil, err)
			return
		}
		s := c.s.executions.Session(ch)
		c.add(ch.ID, s)
		go s.Start(x, fds) // ends with the session
	case wire.OpAttach:
		s := c.s.executions.Session(ch)
		c.add(ch.ID, s)
		go s.Attach(d.Str(), execution.Offsets{Stdout: d.Int(), Stderr: d.Int()}) // ends with the session
	case wire.OpTaskStart:
		t, err := wire.DecodeTask(d.B)
		if err != nil {
			process.CloseAll(fds)
			ch.Answer(nil, err)
			return
		}
		go c.startTask(ch, t, fds) // ends when the program was executed
	case wire.OpRetire:
		ch.Answer(nil, c.s.retire(c))
	case wire.OpReuse:
		ch.Answer(nil, c.s.reuse(d.B, fds)) // here: what this agent asks next is of the new task
	default:
		c.openMore(ch, op, d)
	}
}

// openMore is open for requests without descriptors: lists, the main task, the shutdown, and last the operations on files.
func (c *conn) openMore(ch channel.Channel, op wire.Op, d *wire.Decoder) {
	switch op {
	case wire.OpList:
		ch.Answer(c.s.list(), nil)
	case wire.OpTaskWait:
		w := &waiter{stop: make(chan struct{})}
		c.add(ch.ID, w)
		notices := len(d.B) > 0 && d.B[0] != 0
		go c.waitTask(ch, w, notices) // ends with the task, or when the agent stops waiting
	case wire.OpTaskState:
		_, err := c.s.mainTask()
		var e wire.Encoder
		e.Bool(err == nil)
		ch.Answer(e.B, nil)
	case wire.OpTaskSignal:
		ch.Answer(nil, c.s.signalTask(d.Str()))
	case wire.OpTaskStop:
		name, timeout := d.Str(), time.Duration(d.Int())
		if d.Err != nil { // half a request would be a stop at once
			ch.Answer(nil, d.Err)
			return
		}
		go func() { ch.Answer(nil, c.s.stopTask(name, timeout)) }() // ends when the task is dead
	case wire.OpShutdown:
		go func() { // ends with the process
			c.s.shutdown()
			ch.Answer(nil, nil)
			c.s.end()
		}()
	default:
		c.openFiles(ch, op, d)
	}
}

// startTask answers with the main task's pid, once its program was executed.
func (c *conn) startTask(ch channel.Channel, t wire.Task, fds []int) {
	pid, err := c.s.startTask(t, fds)
	var e wire.Encoder
	e.Int(int64(pid))
	ch.Answer(e.B, err)
}

// list encodes the executions that are kept: their number, then each of them.
func (s *Server) list() []byte {
	all := s.executions.List()
	var e wire.Encoder
	e.Uint(uint64(len(all)))
	for _, x := range all {
		e.Execution(x)
	}
	return e.B
}
