package nameserver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/drover-project/drover/service"
)

// Find returns the registrations of a service in a namespace, healthy or not. Any goroutine may call it.
type Find func(ctx context.Context, namespace, name string) ([]*service.Registration, error)

// Config of a Server.
type Config struct {
	Domain    string         // without dots at its ends, such as drover
	TTL       time.Duration  // of answers about services, whole seconds
	Allow     []netip.Prefix // who may ask
	Recursors []string       // host:port of those that are asked for other names; none: these are refused
	UDP       []net.PacketConn
	TCP       []net.Listener
}

const (
	busy       = 256             // questions that are answered at once; over UDP more are dropped
	patience   = 2 * time.Second // for one answer of another server, and for a client's next question
	maxUDP     = 1232            // bytes of an answer over UDP, which no network cuts
	maxRecords = 500             // of an answer
)

// Server answers questions.
type Server struct {
	cfg   *Config
	find  Find
	turns chan struct{}
}

// New returns a server of what the configuration has when Run is called. It owns the listeners there.
func New(cfg *Config, find Find) *Server {
	cfg.Domain = dns.CanonicalName(cfg.Domain)
	return &Server{cfg: cfg, find: find, turns: make(chan struct{}, busy)}
}

// Addr is host:port of the first listener; "" if there is none. s may be nil.
func (s *Server) Addr() string {
	if s == nil || len(s.cfg.UDP) == 0 {
		return ""
	}
	return s.cfg.UDP[0].LocalAddr().String()
}

// Run serves until ctx ends, and closes the listeners.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { s.serve(ctx, w, q) })
	servers := []*dns.Server{}
	for _, c := range s.cfg.UDP {
		servers = append(servers, &dns.Server{PacketConn: c, Handler: handler, UDPSize: dns.MinMsgSize})
	}
	for _, l := range s.cfg.TCP {
		servers = append(servers, &dns.Server{
			Listener: l, Handler: handler, ReadTimeout: patience, WriteTimeout: patience, MaxTCPQueries: 128,
			IdleTimeout: func() time.Duration { return patience },
		})
	}
	failed := make(chan error, len(servers))
	var running sync.WaitGroup
	for _, one := range servers {
		running.Go(func() { // ends with its listener, below
			err := one.ActivateAndServe()
			cancel()
			failed <- err
		})
	}
	<-ctx.Done()
	for _, one := range servers {
		one.ShutdownContext(context.WithoutCancel(ctx)) //nolint:errcheck // one that has failed says so below
	}
	s.Close()
	running.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		if err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Close closes the listeners, of a server that does not run too. s may be nil.
func (s *Server) Close() {
	if s == nil {
		return
	}
	for _, c := range s.cfg.UDP {
		_ = c.Close()
	}
	for _, l := range s.cfg.TCP {
		_ = l.Close()
	}
}

// serve answers one question, or is silent.
func (s *Server) serve(ctx context.Context, w dns.ResponseWriter, q *dns.Msg) {
	from, err := netip.ParseAddrPort(w.RemoteAddr().String())
	if err != nil || !s.allowed(from.Addr()) {
		_ = w.Close()
		return
	}
	_, udp := w.RemoteAddr().(*net.UDPAddr)
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	default:
		if udp { // the client asks again
			return
		}
		_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeServerFailure))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer := s.answer(ctx, q)
	size := dns.MinMsgSize
	if opt := q.IsEdns0(); opt != nil {
		if answer.IsEdns0() == nil {
			answer.SetEdns0(maxUDP, false)
		}
		size = max(int(opt.UDPSize()), dns.MinMsgSize)
	} else {
		answer.Extra = slices.DeleteFunc(answer.Extra, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeOPT })
	}
	if size = min(size, maxUDP); !udp {
		size = dns.MaxMsgSize
	}
	answer.Truncate(size)
	_ = w.WriteMsg(answer) // who is gone asks again
}

func (s *Server) allowed(who netip.Addr) bool {
	who = who.Unmap().WithZone("")
	return slices.ContainsFunc(s.cfg.Allow, func(p netip.Prefix) bool { return p.Contains(who) })
}

// answer says what is known of the question.
func (s *Server) answer(ctx context.Context, q *dns.Msg) *dns.Msg {
	switch {
	case q.Opcode != dns.OpcodeQuery:
		return new(dns.Msg).SetRcode(q, dns.RcodeNotImplemented)
	case len(q.Question) != 1:
		return new(dns.Msg).SetRcode(q, dns.RcodeFormatError)
	case q.Question[0].Qclass != dns.ClassINET:
		return new(dns.Msg).SetRcode(q, dns.RcodeRefused)
	}
	if opt := q.IsEdns0(); opt != nil && opt.Version() != 0 {
		return new(dns.Msg).SetRcode(q, dns.RcodeBadVers)
	}
	if dns.IsSubDomain(s.cfg.Domain, dns.CanonicalName(q.Question[0].Name)) {
		return s.own(ctx, q)
	}
	return s.forward(ctx, q)
}

// forward asks the resolvers of the machine one after the other.
func (s *Server) forward(ctx context.Context, q *dns.Msg) *dns.Msg {
	if len(s.cfg.Recursors) == 0 {
		return new(dns.Msg).SetRcode(q, dns.RcodeRefused)
	}
	asked := q.Copy()
	asked.Id = dns.Id()
	asked.Extra = nil
	asked.SetEdns0(maxUDP, false)
	for _, address := range s.cfg.Recursors {
		for _, network := range []string{"udp", "tcp"} {
			c := dns.Client{Net: network, Timeout: patience / 2, UDPSize: maxUDP}
			answer, _, err := c.ExchangeContext(ctx, asked, address)
			if err != nil || answer.Id != asked.Id || !slices.Equal(answer.Question, asked.Question) {
				break // the next one
			}
			if answer.Truncated && network == "udp" {
				continue
			}
			answer.Id = q.Id
			return answer
		}
	}
	return new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)
}
