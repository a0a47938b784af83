package audit

import (
	"net/netip"
	"strings"
	"sync"
	"time"
)

// How refusals of those whom nobody knows are recorded, where they come without a face: one line of each sender and kind in this
// time, for at most so many senders. What others send is counted together.
const (
	refusedEach = time.Minute
	mostSenders = 256
)

// sender is who is refused, and how.
type sender struct {
	from   string // an address, a network of 64 bits of IPv6, or a task; "" = those that are too many
	route  string // not the path, which is the stranger's to choose
	status int
}

// seldom counts refusals. The zero value is ready.
type seldom struct {
	mu      sync.Mutex
	refused map[sender]*Event // guarded by mu: the newest of each sender, with those that no line told of
}

// Refused records a refusal. The first of a sender is a line; those that follow it within a minute are counted in the next, which comes
// after that minute. It never waits: what was refused stays so.
func (l *Log) Refused(e *Event) {
	if l == nil {
		return
	}
	e.Stage, e.Allowed, e.RequestID = Complete, false, l.ids.New()
	for _, text := range []*string{&e.Path, &e.Object, &e.UserAgent, &e.Reason} { // they are kept, and strangers wrote them
		if len(*text) > maxPath {
			*text = strings.Clone((*text)[:maxPath])
		}
	}
	key := sender{network(e.Remote), e.Route, e.Status}
	l.seldom.mu.Lock()
	if l.refused == nil {
		l.refused = map[sender]*Event{}
	}
	known := l.refused[key]
	if known == nil && len(l.refused) >= mostSenders {
		key = sender{status: e.Status}
		known = l.refused[key]
		e.Remote, e.Path, e.Object, e.UserAgent, e.Reason = "", "", "", "", "more senders than are told apart"
	}
	if known != nil {
		also := known.Also + 1
		*known = *e
		known.Also = also
		l.seldom.mu.Unlock()
		return
	}
	kept := *e
	l.refused[key] = &kept
	l.seldom.mu.Unlock()
	_ = l.Record(e, false)
}

// tellRefused records what was counted, and forgets who was not heard of since.
func (l *Log) tellRefused() {
	var told []Event
	l.seldom.mu.Lock()
	for key, e := range l.refused {
		if e.Also == 0 {
			delete(l.refused, key)
			continue
		}
		line := *e
		line.Also-- // the line is one of them
		told = append(told, line)
		e.Also = 0
	}
	l.seldom.mu.Unlock()
	for i := range told {
		_ = l.Record(&told[i], false)
	}
}

// network is where an address is, without a port: one host may have all addresses of a network of 64 bits.
func network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
