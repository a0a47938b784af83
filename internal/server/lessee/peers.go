package lessee

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// Procedures by which servers share warm runners.
const (
	procRenew    = "Runners.Renew"
	procWithhold = "Runners.Withhold"
	procGiveBack = "Runners.GiveBack"
	procWants    = "Runners.Wants"
	procHas      = "Executions.Has"
	procList     = "Executions.List"
)

// withholding is what a leader wants withheld.
type withholding struct {
	Token    string
	AllocIDs []string
}

// sought is an execution that another server looks for. That server's state has the index.
type sought struct {
	ID    string
	Index uint64
}

// listed is a list of executions that another server makes, of those in the namespaces.
type listed struct {
	Query      execution.ListQuery
	Namespaces []string
}

// Answer registers what other servers may ask.
func (l *Lessee) Answer(mux *peercall.Mux) {
	peercall.Handle(mux, procRenew, func(_ context.Context, _ string, incarnation uint64) (struct{}, error) {
		return struct{}{}, l.AnswerRenew(incarnation)
	})
	peercall.Handle(mux, procWithhold, func(ctx context.Context, _ string, in withholding) (struct{}, error) {
		return struct{}{}, l.AnswerWithhold(ctx, in.Token, in.AllocIDs)
	})
	peercall.Handle(mux, procGiveBack, func(_ context.Context, _ string, token string) (struct{}, error) {
		l.AnswerGiveBack(token) //nolint:contextcheck // it lives as long as the service
		return struct{}{}, nil
	})
	peercall.Handle(mux, procWants, func(_ context.Context, _ string, token string) (bool, error) { return l.AnswerWants(token) })
	peercall.Handle(mux, procHas, func(ctx context.Context, _ string, in sought) (bool, error) { return l.AnswerHas(ctx, in.ID, in.Index) })
	peercall.Handle(mux, procList, func(ctx context.Context, _ string, in listed) (execution.ListPage, error) {
		namespaces := map[string]bool{}
		for _, name := range in.Namespaces {
			namespaces[name] = true
		}
		return l.part(ctx, in.Query, func(name string) bool { return namespaces[name] })
	})
}

// Network is how the servers of a region reach each other. It is a Peers.
type Network struct{ Servers *servers.Servers }

// Renew implements Peers.
func (n Network) Renew(ctx context.Context, incarnation uint64) error {
	_, err := callLeader[struct{}](ctx, n, procRenew, incarnation)
	return err
}

// Wants implements Peers. A leader of an older program withholds for a minute at most.
func (n Network) Wants(ctx context.Context, token string) (bool, error) {
	wanted, err := callLeader[bool](ctx, n, procWants, token)
	if drover.CodeOf(err) == drover.NotImplemented {
		return false, nil
	}
	return wanted, err
}

// callLeader calls a procedure of the leader.
func callLeader[Out any](ctx context.Context, n Network, procedure string, in any) (out Out, err error) {
	leader, ok := n.Servers.Leader()
	if !ok {
		return out, drover.Errorf(drover.NotLeader, "No cluster leader")
	}
	return peercall.Call[Out](ctx, n.Servers.Client(), leader.Address, procedure, in)
}

// Gone implements Peers. It reports true if nothing listens at the server's address any more: the connection is refused. A
// server that hangs or cannot be reached may live.
func (n Network) Gone(ctx context.Context, server string) bool {
	s, ok := n.Servers.ByID(server)
	if !ok {
		return false
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	if err == nil {
		_ = c.Close() // nothing was said on it
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Withhold implements Peers.
func (n Network) Withhold(ctx context.Context, server, token string, allocIDs []string) error {
	_, err := call[struct{}](ctx, n, server, procWithhold, withholding{token, allocIDs})
	return err
}

// GiveBack implements Peers.
func (n Network) GiveBack(ctx context.Context, server, token string) error {
	_, err := call[struct{}](ctx, n, server, procGiveBack, token)
	return err
}

// call calls a procedure of the server with that id.
func call[Out any](ctx context.Context, n Network, server, procedure string, in any) (out Out, err error) {
	s, ok := n.Servers.ByID(server)
	if !ok {
		return out, drover.Errorf(drover.Unavailable, "server %s is not known", server)
	}
	return peercall.Call[Out](ctx, n.Servers.Client(), s.Address, procedure, in)
}
