package server

import (
	"sync"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// open starts what a channel asks for. It must not block: what takes time gets a goroutine.
func (c *conn) open(channel uint32, op wire.Op, p []byte, fds []int) {
	if op != wire.OpExec && op != wire.OpTaskStart && op != wire.OpReuse {
		closeAll(fds)
	}
	d := &wire.Decoder{B: append([]byte(nil), p...)} // p is only lent
	switch op {
	case wire.OpExec:
		x, err := wire.DecodeExec(d.B)
		if err != nil {
			closeAll(fds)
			c.fail(channel, err)
			return
		}
		s := newSession(c, channel)
		c.add(channel, s)
		go s.start(x, fds) // ends with the session
	case wire.OpAttach:
		s := newSession(c, channel)
		c.add(channel, s)
		go s.attach(d.Str(), execution.Offsets{Stdout: d.Int(), Stderr: d.Int()}) // ends with the session
	case wire.OpTaskStart:
		t, err := wire.DecodeTask(d.B)
		if err != nil {
			closeAll(fds)
			c.fail(channel, err)
			return
		}
		go c.startTask(channel, t, fds) // ends when the program was executed
	case wire.OpRetire:
		c.answer(channel, nil, c.s.retire(c))
	case wire.OpReuse:
		c.answer(channel, nil, c.s.reuse(d.B, fds)) // here: what this agent asks next is of the new task
	default:
		c.openMore(channel, op, d)
	}
}

func (c *conn) openMore(channel uint32, op wire.Op, d *wire.Decoder) {
	switch op {
	case wire.OpList:
		c.reply(channel, c.s.list())
	case wire.OpTaskWait:
		w := &waiter{stop: make(chan struct{})}
		c.add(channel, w)
		notices := len(d.B) > 0 && d.B[0] != 0
		go c.waitTask(channel, w, notices) // ends with the task, or when the agent stops waiting
	case wire.OpTaskState:
		_, err := c.s.mainTask()
		var e wire.Encoder
		e.Bool(err == nil)
		c.reply(channel, e.B)
	case wire.OpTaskSignal:
		c.answer(channel, nil, c.s.signalTask(d.Str()))
	case wire.OpTaskStop:
		name, timeout := d.Str(), time.Duration(d.Int())
		go func() { c.answer(channel, nil, c.s.stopTask(name, timeout)) }() // ends when the task is dead
	case wire.OpShutdown:
		go func() { // ends with the process
			c.s.shutdown()
			c.reply(channel, nil)
			c.s.end()
		}()
	default:
		c.openFiles(channel, op, d)
	}
}

// waiter is a channel that only waits.
type waiter struct {
	once sync.Once
	stop chan struct{}
}

func (w *waiter) frame(wire.Header, []byte) {}
func (w *waiter) gone(bool)                 { w.once.Do(func() { close(w.stop) }) }

func (c *conn) startTask(channel uint32, t wire.Task, fds []int) {
	pid, err := c.s.startTask(t, fds)
	var e wire.Encoder
	e.Int(int64(pid))
	c.answer(channel, e.B, err)
}

func (s *Server) list() []byte {
	s.mu.Lock()
	all := make([]*command, 0, len(s.execs))
	for _, x := range s.execs {
		all = append(all, x)
	}
	s.mu.Unlock()
	var e wire.Encoder
	e.Uint(uint64(len(all)))
	for _, x := range all {
		e.Execution(x.describe())
	}
	return e.B
}
