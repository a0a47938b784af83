package raftlog

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover/internal/clock"
)

// What the library says, by what it means to an operator.
var (
	// normal happens while servers start, wait to be joined, catch up, or learn of another leader.
	normal = set(
		"failed to get previous log", "appendEntries rejected, sending older logs", "previous log term mis-match", "clearing log suffix",
		"no known peers, aborting election", "not part of stable configuration, aborting election",
		"heartbeat timeout reached, not part of a stable configuration or a non-voter, not triggering a leader election",
		"peer has newer term, stopping replication", "duplicate requestVote from", "failed to contact",
	)
	// passing is normal if the connection was closed: this server stops, or the other one did.
	passing = set("failed to decode incoming command", "failed to flush response", "failed to accept connection")
	// unreached says that another server is not reached.
	unreached = set(
		"failed to heartbeat to", "failed to appendEntries to", "failed to pipeline appendEntries", "failed to make requestVote RPC",
		"failed to install snapshot", "failed to send snapshot to", "failed to start pipeline replication to",
	)
)

func set(list ...string) map[string]bool {
	out := map[string]bool{}
	for _, one := range list {
		out[one] = true
	}
	return out
}

// ofAConnection reports whether the error among the arguments is that of a connection that somebody closed.
func ofAConnection(args []any) bool {
	err := errorOf(args)
	closed := []error{net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}
	return slices.ContainsFunc(closed, func(one error) bool { return errors.Is(err, one) })
}

func errorOf(args []any) error {
	for i := 0; i+1 < len(args); i += 2 {
		if err, ok := args[i+1].(error); ok {
			return err
		}
	}
	return nil
}

// outages remembers which servers are not reached and what was told of that: the library says so several times a second.
type outages struct {
	clock   clock.Clock
	servers atomic.Pointer[func() []raft.Server] // that the log has; nil until raft is there

	mu   sync.Mutex
	list map[string]*outage // guarded by mu: by server and reason
}

// outage is one server that is not reached for one reason.
type outage struct {
	first, last, told time.Time
	count             int // since it was told
}

// How long an outage lasts until it is told, how often it is told again, and after how long without an error it is over: more than
// raft waits between two tries.
const (
	tellAfter = time.Second
	tellEach  = time.Minute
	over      = 15 * time.Second
)

// mostOutages bounds how many are told apart.
const mostOutages = 100

// ports are the parts of network errors that differ each time.
var ports = regexp.MustCompile(`:\d+->`)

// note takes over that a server was not reached, and returns what to tell of it, if anything: nothing of one that the log does not
// have any more.
func (o *outages) note(msg string, args []any) (line []any, tell bool) {
	servers := o.servers.Load()
	if servers == nil {
		return nil, false
	}
	list := (*servers)()
	i := slices.IndexFunc(list, func(s raft.Server) bool { return names(args, s) })
	if i < 0 {
		return nil, false
	}
	now, err := o.clock.Now(), errorOf(args)
	key := string(list[i].ID) + " " + ports.ReplaceAllString(fmt.Sprint(err), "->")
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.list[key]
	if one == nil || now.Sub(one.last) > over {
		if o.list == nil || len(o.list) >= mostOutages {
			o.list = map[string]*outage{}
		}
		one = &outage{first: now}
		o.list[key] = one
	}
	one.last = now
	one.count++
	if now.Sub(one.first) < tellAfter || now.Sub(one.told) < tellEach {
		return nil, false
	}
	line = []any{"server", list[i].ID, "address", list[i].Address, "raft", msg, "times", one.count, "error", err}
	one.told, one.count = now, 0
	return line, true
}

// names reports whether one of the arguments is the server: the library gives it whole, its address, or its id.
func names(args []any, s raft.Server) bool {
	return slices.ContainsFunc(args, func(a any) bool {
		switch a := a.(type) {
		case raft.Server:
			return a.ID == s.ID
		case raft.ServerID:
			return a == s.ID
		case raft.ServerAddress:
			return a == s.Address
		}
		return false
	})
}
