package fastpath

import (
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	keptOpen = 100              // idle connections to one address: as many calls at once need no new ones. net/http keeps 2
	keptFor  = 90 * time.Second // without use, as net/http does
)

// idle keeps connections for the next calls.
type idle struct {
	clock clock.Clock

	mu    sync.Mutex
	conns map[string][]*conn // guarded by mu; by address, those that wait longest first
	timer clock.Timer        // guarded by mu; nil while there are none
}

// take returns a connection to the address over which nothing came meanwhile, the one used last; or nil.
func (i *idle) take(addr string) *conn {
	for {
		c := i.pop(addr)
		if c == nil || c.ends.silent() {
			return c
		}
		_ = c.Close()
	}
}

func (i *idle) pop(addr string) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := i.conns[addr]
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	i.conns[addr] = list[:last]
	return c
}

// put keeps a connection, or closes it if enough are kept.
func (i *idle) put(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := i.conns[c.addr]
	if len(list) >= keptOpen {
		_ = c.Close()
		return
	}
	c.since = i.clock.Now()
	i.conns[c.addr] = append(list, c)
	if i.timer == nil {
		i.timer = i.clock.AfterFunc(keptFor, i.expire)
	}
}

// expire closes the connections whose time is over, and comes back for the others.
func (i *idle) expire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	next := time.Duration(-1)
	for addr, list := range i.conns {
		n := slices.IndexFunc(list, func(c *conn) bool { return now.Sub(c.since) < keptFor })
		if n < 0 {
			closeAll(list)
			delete(i.conns, addr)
			continue
		}
		closeAll(list[:n])
		list = slices.Delete(list, 0, n)
		i.conns[addr] = list
		if wait := keptFor - now.Sub(list[0].since); next < 0 || wait < next {
			next = wait
		}
	}
	if next < 0 {
		i.timer = nil
	} else if i.timer != nil { // nil: closed meanwhile
		i.timer.Reset(next)
	}
}

// close closes what is idle now.
func (i *idle) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, list := range i.conns {
		closeAll(list)
	}
	clear(i.conns)
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

func closeAll(list []*conn) {
	for _, c := range list {
		_ = c.Close()
	}
}
