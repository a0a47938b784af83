package socket

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/clock"
)

// ErrLeft is the cause when the peer closed the connection or vanished.
var ErrLeft = errors.New("the client left")

// PingEvery is how often faces ask whether a peer is still there, unless they are told otherwise.
const PingEvery = 15 * time.Second

// How long a peer may take.
const (
	pongTimeout = 10 * time.Second // to answer a ping
	stallLimit  = time.Minute      // to take any byte of what is being sent
)

// Conn is a websocket connection with one sender and one receiver.
type Conn struct {
	*websocket.Conn
	clock   clock.Clock
	joined  *joiner // nil: nothing can be joined
	began   time.Time
	sending atomic.Int64 // when the message began that is being sent, in ns since began, which no step of the wall clock moves; 0 = none is
	waiting atomic.Bool  // a received message finds no taker, so pongs are not read either
}

// New wraps a connection.
func New(conn *websocket.Conn, c clock.Clock) *Conn {
	return &Conn{Conn: conn, clock: c, began: c.Now()}
}

// Send writes one message; it blocks while the peer does not read.
func (c *Conn) Send(ctx context.Context, kind websocket.MessageType, data []byte) error {
	c.sending.Store(max(c.age(), 1))
	err := c.Write(ctx, kind, data)
	c.sending.Store(0)
	return err
}

// KeepAlive pings until it is stopped or ctx ends (nil), or the peer is gone (ErrLeft), and calls left with that; not if
// it is stopped before the first ping.
func (c *Conn) KeepAlive(ctx context.Context, every time.Duration, left func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	timer := c.clock.AfterFunc(every, func() { // ends with stop, ctx or the peer
		defer close(ended)
		left(c.ping(ctx, every))
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-ended
		}
	}
}

// ping asks for a pong every interval. While a message is being sent it asks nothing, since the ping would wait
// behind it. A late pong is forgiven if the peer may be unable to answer.
func (c *Conn) ping(ctx context.Context, every time.Duration) error {
	for ok := ctx.Err() == nil; ok; ok = clock.Sleep(ctx, c.clock, every) {
		if c.sends() {
			continue
		}
		pong, cancel := c.clock.WithTimeout(ctx, pongTimeout)
		err := c.Ping(pong)
		late := pong.Err() != nil
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
		case late && (c.sends() || c.waiting.Load()): // a peer that lives may be unable to answer
		default:
			return ErrLeft // also one whose stdin nobody reads, so that it is not read that it closed
		}
	}
	return nil
}

// age is how long the connection is there, in ns.
func (c *Conn) age() int64 { return int64(c.clock.Now().Sub(c.began)) }

// sends reports whether a message is on its way to a peer that is slow, but not stalled.
func (c *Conn) sends() bool {
	since := c.sending.Load()
	return since != 0 && c.age()-since < int64(stallLimit)
}
