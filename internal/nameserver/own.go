package nameserver

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/service"
)

// asked is what a name of our domain asks for.
type asked struct {
	service   string
	tag       string // "" = any
	namespace string
}

// own answers a question about a name of our domain.
func (s *Server) own(ctx context.Context, q *dns.Msg) *dns.Msg {
	question := q.Question[0]
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	m.RecursionAvailable = len(s.cfg.Recursors) > 0
	name := dns.Fqdn(question.Name)
	labels := dns.SplitDomainName(name)
	labels = labels[:len(labels)-dns.CountLabel(s.cfg.Domain)]
	if len(labels) == 0 {
		if question.Qtype == dns.TypeSOA {
			m.Answer = []dns.RR{s.soa()}
		} else {
			m.Ns = []dns.RR{s.soa()}
		}
		return m
	}
	if address, ok := addressOf(labels); ok {
		m.Answer = s.addresses(name, question.Qtype, []netip.Addr{address}, time.Hour)
		return s.finish(m, true)
	}
	what, ok := parse(labels)
	if !ok {
		return s.finish(m, false)
	}
	found, err := s.healthy(ctx, what)
	if err != nil {
		return new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)
	}
	s.tell(ctx, m, question, found)
	return s.finish(m, len(found) > 0)
}

// finish says that a name is not there, or has nothing of what was asked for.
func (s *Server) finish(m *dns.Msg, exists bool) *dns.Msg {
	if !exists {
		m.Rcode = dns.RcodeNameError
	}
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{s.soa()}
	}
	return m
}

// soa is the domain's; its last number says that what is not there may be there the next moment.
func (s *Server) soa() dns.RR {
	return &dns.SOA{
		Hdr: s.header(s.cfg.Domain, dns.TypeSOA, 0), Ns: "ns." + s.cfg.Domain, Mbox: "hostmaster." + s.cfg.Domain,
		Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400,
	}
}

func (s *Server) header(name string, kind uint16, ttl time.Duration) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: uint32(ttl / time.Second)}
}

// parse reads a name without our domain: [TAG.]NAME.service[.NAMESPACE.ns], or _NAME._TAG.service[.NAMESPACE.ns] where the tag tcp
// or udp is any.
func parse(labels []string) (a asked, ok bool) {
	a.namespace = drover.DefaultNamespace
	if n := len(labels); n >= 3 && strings.EqualFold(labels[n-1], "ns") {
		a.namespace, labels = labels[n-2], labels[:n-2]
	}
	n := len(labels)
	if n < 2 || n > 3 || !strings.EqualFold(labels[n-1], "service") {
		return a, false
	}
	if labels = labels[:n-1]; n == 2 {
		a.service = labels[0]
		return a, true
	}
	service, first := strings.CutPrefix(labels[0], "_")
	tag, second := strings.CutPrefix(labels[1], "_")
	if !first || !second {
		return asked{labels[1], labels[0], a.namespace}, true
	}
	if a.service, a.tag = service, tag; strings.EqualFold(tag, "tcp") || strings.EqualFold(tag, "udp") {
		a.tag = ""
	}
	return a, true
}

// healthy returns what is healthy of what was asked for. Names have no case in DNS: they are looked for as they were asked for, and in
// small letters.
func (s *Server) healthy(ctx context.Context, a asked) (found []*service.Registration, err error) {
	for _, name := range [][2]string{{a.namespace, a.service}, {strings.ToLower(a.namespace), strings.ToLower(a.service)}} {
		if found, err = s.find(ctx, name[0], name[1]); err != nil || len(found) > 0 {
			break
		}
		if strings.ToLower(a.namespace) == a.namespace && strings.ToLower(a.service) == a.service {
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(r *service.Registration) bool {
		return r.Unhealthy ||
			a.tag != "" && !slices.ContainsFunc(r.Tags, func(t string) bool { return strings.EqualFold(t, a.tag) })
	}), err
}

// tell answers with services, in any order: clients take the first.
func (s *Server) tell(ctx context.Context, m *dns.Msg, q dns.Question, found []*service.Registration) {
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	found = found[:min(len(found), maxRecords)]
	if q.Qtype == dns.TypeSRV {
		s.tellPorts(m, q.Name, found)
		return
	}
	var addresses []netip.Addr
	alias := ""
	for _, r := range found {
		address, err := netip.ParseAddr(r.Address)
		if err != nil {
			alias = r.Address
		} else if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	if _, valid := dns.IsDomainName(alias); len(addresses) == 0 && alias != "" && valid { // an address of the job's own
		m.Answer = []dns.RR{&dns.CNAME{Hdr: s.header(q.Name, dns.TypeCNAME, s.cfg.TTL), Target: dns.Fqdn(alias)}}
		if len(s.cfg.Recursors) > 0 && !dns.IsSubDomain(s.cfg.Domain, dns.CanonicalName(alias)) { // clients do not ask further
			m.Answer = append(m.Answer, s.forward(ctx, new(dns.Msg).SetQuestion(dns.Fqdn(alias), q.Qtype)).Answer...)
		}
		return
	}
	m.Answer = s.addresses(q.Name, q.Qtype, addresses, s.cfg.TTL)
}

// tellPorts answers with addresses and ports.
func (s *Server) tellPorts(m *dns.Msg, name string, found []*service.Registration) {
	seen := map[string]bool{}
	for _, r := range found {
		target := dns.Fqdn(r.Address)
		address, err := netip.ParseAddr(r.Address)
		if err == nil {
			target = s.nameOf(address)
		} else if _, valid := dns.IsDomainName(r.Address); !valid {
			continue
		}
		m.Answer = append(m.Answer, &dns.SRV{
			Hdr: s.header(name, dns.TypeSRV, s.cfg.TTL), Priority: 1, Weight: 1, Port: uint16(r.Port), Target: target,
		})
		if err == nil && !seen[target] {
			seen[target] = true
			for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
				m.Extra = append(m.Extra, s.addresses(target, kind, []netip.Addr{address}, s.cfg.TTL)...)
			}
		}
	}
}

// addresses are the records of a kind.
func (s *Server) addresses(name string, kind uint16, list []netip.Addr, ttl time.Duration) (out []dns.RR) {
	for _, a := range list {
		switch {
		case kind == dns.TypeA && a.Is4():
			out = append(out, &dns.A{Hdr: s.header(name, kind, ttl), A: a.AsSlice()})
		case kind == dns.TypeAAAA && a.Is6():
			out = append(out, &dns.AAAA{Hdr: s.header(name, kind, ttl), AAAA: a.WithZone("").AsSlice()})
		}
	}
	return out
}

// nameOf is the name of an address, which SRV records need: HEX.addr.drover.
func (s *Server) nameOf(a netip.Addr) string {
	return hex.EncodeToString(a.AsSlice()) + ".addr." + s.cfg.Domain
}

// addressOf reads the name of an address without our domain.
func addressOf(labels []string) (netip.Addr, bool) {
	if len(labels) != 2 || !strings.EqualFold(labels[1], "addr") {
		return netip.Addr{}, false
	}
	bytes, err := hex.DecodeString(labels[0])
	if err != nil {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(bytes)
}
