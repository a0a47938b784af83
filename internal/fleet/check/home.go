package check

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/link"
)

// Home is where the machine's agent calls. It is the control of one node, and has nothing for it to do. It certifies that
// one machine where links are mutual TLS.
type Home struct {
	address string // what the machine dials
	token   string
	clock   clock.Clock
	came    chan *drover.Node

	once      sync.Once
	authority *gate.Authority // made once
	err       error
}

// NewHome returns a home with a token that only the machine is given. address is what the machine dials.
func NewHome(address string, c clock.Clock) *Home {
	return &Home{address: address, token: rand.Text(), clock: c, came: make(chan *drover.Node, 1)}
}

// Address is what the machine dials.
func (h *Home) Address() string { return h.address }

// Token is what the machine shows.
func (h *Home) Token() string { return h.token }

// Authority implements gate.Registrar.
func (h *Home) Authority() (*gate.Authority, error) {
	h.once.Do(func() { h.authority, h.err = gate.NewAuthority([]byte(h.token)) })
	return h.authority, h.err
}

// Own implements gate.Registrar.
func (h *Home) Own() *gate.Authority { return nil }

// Machine implements gate.Registrar.
func (h *Home) Machine(token string) (string, error) { return "check", h.admit(token) }

// Certify implements gate.Registrar.
func (h *Home) Certify(_ context.Context, who link.Applicant, request []byte) ([]byte, error) {
	if err := h.admit(who.Tokens.Join); err != nil {
		return nil, err
	}
	a, err := h.Authority()
	if err != nil {
		return nil, err
	}
	return a.Certify(request, "check", h.clock.Now())
}

// Await waits for the first node that calls. Errors: Unavailable when ctx ends.
func (h *Home) Await(ctx context.Context) (*drover.Node, error) {
	select {
	case n := <-h.came:
		return n, nil
	case <-ctx.Done():
		return nil, drover.Errorf(drover.Unavailable, "nobody called at %s: %w", h.address, context.Cause(ctx))
	}
}

// Admit implements link.Authenticator.
func (h *Home) Admit(_ context.Context, tokens exchange.Tokens, _ *drover.Node) error {
	return h.admit(tokens.Join)
}

func (h *Home) admit(token string) error {
	if subtle.ConstantTimeCompare([]byte(h.token), []byte(token)) != 1 {
		return drover.Errorf(drover.Unauthorized, "the token is not that of this check")
	}
	return nil
}

// Authenticate implements link.Authenticator: there is no secret that this node could know.
func (h *Home) Authenticate(context.Context, string, string) error { return nil }

// Register implements exchange.Controller.
func (h *Home) Register(_ context.Context, n *drover.Node) (exchange.Registration, error) {
	select {
	case h.came <- n:
	default: // it came before
	}
	return exchange.Registration{TTL: 10 * time.Second}, nil
}

// Heartbeat implements exchange.Controller.
func (h *Home) Heartbeat(context.Context, string) (exchange.Registration, error) {
	return exchange.Registration{TTL: 10 * time.Second}, nil
}

// Pull implements exchange.Controller: nothing is wanted.
func (h *Home) Pull(ctx context.Context, _ string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	if seen.Index > 0 {
		clock.Sleep(ctx, h.clock, maxWait)
	}
	return exchange.Assignment{Index: max(seen.Index, 1)}, nil
}

// Push implements exchange.Controller.
func (h *Home) Push(context.Context, string, []exchange.AllocUpdate) error { return nil }
