package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// Server is one of the servers that are known, of any region.
type Server struct {
	ID, Name, Region string
	Address          string // where other servers dial it
	HTTP             string // where clients call it
	Alive, Voter     bool
}

// Servers are the servers as this one knows them.
type Servers interface {
	Self() Server
	Leader() (Server, bool)
	List() []Server
	ByID(id string) (Server, bool)
	// Changed is closed when any of that may have changed.
	Changed() <-chan struct{}
	// Dial opens a connection to the server at the address, on which both know each other to be servers.
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// dialError says that the server cannot have got the request.
type dialError struct{ err error }

// Error returns the reason.
func (e *dialError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *dialError) Unwrap() error { return e.err }

// unsent reports whether nobody can have got the request.
func unsent(err error) bool { _, ok := errors.AsType[*dialError](err); return ok }

// errNoLeader is Nomad's sentence, which its clients know.
func errNoLeader() error { return drover.Errorf(drover.NotLeader, "No cluster leader") }

// target is where a request goes: to a server, or nowhere because it is answered here.
type target struct {
	Server
	here  bool
	leads bool // it is asked because it leads
	way   httpapi.Way
}

// inRegion returns a server of another region, the leading one of those that are alive if that is known.
// Errors: Invalid if nobody of that region is known.
func (l *Relay) inRegion(region string) (target, error) {
	var found []Server
	for _, s := range l.servers.List() {
		if s.Region == region && s.Alive {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		err := errors.New("No path to region") //nolint:staticcheck // Nomad's words
		return target{}, &httpapi.StatusError{Status: http.StatusInternalServerError, Err: err}
	}
	return target{Server: found[l.turn.Add(1)%uint64(len(found))], way: httpapi.FromRegion}, nil
}

// member finds a server of the own region by its id, name, name with region, or "leader".
func (l *Relay) member(ctx context.Context, name string) (target, error) {
	if name == "leader" || l.node {
		return l.leader(ctx)
	}
	self := l.servers.Self()
	for _, s := range l.servers.List() {
		full := s.Name
		if !strings.HasSuffix(full, "."+s.Region) {
			full += "." + s.Region
		}
		if s.Region == self.Region && (name == s.ID || name == s.Name || name == full) {
			return l.to(s), nil
		}
	}
	if name == self.Name {
		return target{here: true}, nil
	}
	return target{}, httpapi.UnknownServer(name)
}

// to is a server of the own region.
func (l *Relay) to(s Server) target {
	return target{Server: s, here: !l.node && s.ID == l.servers.Self().ID, way: httpapi.FromServer}
}

// leader waits until there is a leader, and if it is this server until it has all that was acknowledged before.
// Errors: NotLeader when ctx ends before.
func (l *Relay) leader(ctx context.Context) (target, error) {
	for {
		changed := l.servers.Changed()
		if s, ok := l.servers.Leader(); ok {
			t := l.to(s)
			t.leads = true
			if t.here && l.ready != nil && l.ready(ctx) != nil {
				return target{}, errNoLeader()
			}
			return t, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return target{}, errNoLeader()
		}
	}
}
