package nameserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world are the services that the tests ask for.
func world(_ context.Context, namespace, name string) (out []*service.Registration, err error) {
	at := func(address string, port int, tags ...string) {
		out = append(out, &service.Registration{Address: address, Port: port, Tags: tags})
	}
	switch namespace + "/" + name {
	case "default/web":
		at("192.0.2.1", 80, "Blue")
		at("192.0.2.1", 81, "green")
		at("192.0.2.2", 80, "green")
		at("2001:db8::1", 80)
		at("192.0.2.9", 80, "blue")
		out[4].Unhealthy = true
	case "prod/web":
		at("192.0.2.77", 7)
	case "default/sick":
		at("192.0.2.9", 80)
		out[0].Unhealthy = true
	case "default/Upper":
		at("192.0.2.3", 3)
	case "default/outside":
		at("www.example.com", 443)
	case "default/many":
		for i := range 2000 {
			at(fmt.Sprintf("10.0.%d.%d", i/250, i%250), i+1)
		}
	case "default/broken":
		err = errors.New("no server")
	}
	return out, err
}

// listen runs a server on a free port, and returns its address.
func listen(t *testing.T, cfg Config, find Find) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, err := net.ListenPacket("udp", l.Addr().String())
	require.NoError(t, err)
	cfg.TCP, cfg.UDP = []net.Listener{l}, []net.PacketConn{c}
	if cfg.Domain == "" {
		cfg.Domain = "drover"
	}
	if cfg.Allow == nil {
		cfg.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	s := New(&cfg, find)
	require.Equal(t, l.Addr().String(), s.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return s.Addr()
}

// ask returns the answer to a question.
func ask(t *testing.T, network, address string, q *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: 10 * time.Second, UDPSize: 4096}
	answer, _, err := c.ExchangeContext(t.Context(), q, address)
	require.NoError(t, err)
	return answer
}

func question(name string, kind uint16) *dns.Msg { return new(dns.Msg).SetQuestion(name, kind) }

// said are the records in short, sorted as they are told in any order.
func said(list []dns.RR) map[string]int {
	out := map[string]int{}
	for _, r := range list {
		out[strings.TrimPrefix(r.String(), r.Header().String())]++
	}
	return out
}

func TestServices(t *testing.T) {
	t.Parallel()
	at := listen(t, Config{TTL: time.Second}, world)
	for name, c := range map[string]struct {
		kind  uint16
		code  int
		found []string
	}{
		"web.service.drover.":              {dns.TypeA, 0, []string{"192.0.2.1", "192.0.2.2"}},
		"WEB.Service.dROVER.":              {dns.TypeA, 0, []string{"192.0.2.1", "192.0.2.2"}},
		"green.web.service.drover.":        {dns.TypeA, 0, []string{"192.0.2.1", "192.0.2.2"}},
		"blue.web.service.drover.":         {dns.TypeA, 0, []string{"192.0.2.1"}},
		"red.web.service.drover.":          {dns.TypeA, dns.RcodeNameError, nil},
		"web.service.default.ns.drover.":   {dns.TypeAAAA, 0, []string{"2001:db8::1"}},
		"web.service.prod.ns.drover.":      {dns.TypeA, 0, []string{"192.0.2.77"}},
		"Web.service.prod.NS.drover.":      {dns.TypeAAAA, 0, nil},
		"blue.web.service.prod.ns.drover.": {dns.TypeA, dns.RcodeNameError, nil},
		"_web._green.service.drover.": {
			dns.TypeSRV, 0, []string{"1 1 81 c0000201.addr.drover.", "1 1 80 c0000202.addr.drover."},
		},
		"_web._tcp.service.prod.ns.drover.":             {dns.TypeSRV, 0, []string{"1 1 7 c000024d.addr.drover."}},
		"sick.service.drover.":                          {dns.TypeA, dns.RcodeNameError, nil},
		"none.service.drover.":                          {dns.TypeA, dns.RcodeNameError, nil},
		"Upper.service.drover.":                         {dns.TypeA, 0, []string{"192.0.2.3"}},
		"outside.service.drover.":                       {dns.TypeA, 0, []string{"www.example.com."}},
		"_outside._tcp.service.drover.":                 {dns.TypeSRV, 0, []string{"1 1 443 www.example.com."}},
		"broken.service.drover.":                        {dns.TypeA, dns.RcodeServerFailure, nil},
		"c0000201.addr.drover.":                         {dns.TypeA, 0, []string{"192.0.2.1"}},
		"20010db8000000000000000000000001.addr.drover.": {dns.TypeAAAA, 0, []string{"2001:db8::1"}},
		"c00002.addr.drover.":                           {dns.TypeA, dns.RcodeNameError, nil},
		"x.addr.drover.":                                {dns.TypeA, dns.RcodeNameError, nil},
		"service.drover.":                               {dns.TypeA, dns.RcodeNameError, nil},
		"a.b.web.service.drover.":                       {dns.TypeA, dns.RcodeNameError, nil},
		"web.drover.":                                   {dns.TypeA, dns.RcodeNameError, nil},
		"drover.":                                       {dns.TypeA, 0, nil},
		"ns.drover.":                                    {dns.TypeA, dns.RcodeNameError, nil},
		"www.example.com.":                              {dns.TypeA, dns.RcodeRefused, nil},
		"notdrover.":                                    {dns.TypeA, dns.RcodeRefused, nil},
	} {
		for _, network := range []string{"udp", "tcp"} {
			answer := ask(t, network, at, question(name, c.kind))
			require.Equal(t, c.code, answer.Rcode, name)
			want := map[string]int{}
			for _, f := range c.found {
				want[f] = 1
			}
			require.Equal(t, want, said(answer.Answer), name)
			if len(c.found) == 0 && c.code != dns.RcodeRefused && c.code != dns.RcodeServerFailure {
				require.IsType(t, &dns.SOA{}, answer.Ns[0], name)
				require.Zero(t, answer.Ns[0].(*dns.SOA).Minttl, "it may be there the next moment")
			}
			for _, r := range answer.Answer {
				require.True(t, strings.EqualFold(name, r.Header().Name))
				require.True(t, r.Header().Ttl == 1 || strings.Contains(name, ".addr."))
			}
		}
	}
	answer := ask(t, "tcp", at, question("web.service.drover.", dns.TypeSRV))
	require.Len(t, answer.Answer, 4)
	require.Equal(t, map[string]int{"192.0.2.1": 1, "192.0.2.2": 1, "2001:db8::1": 1}, said(answer.Extra), "each address once")
}

// An answer is no larger than its asker takes, never more than fits everywhere over UDP, and whole over TCP.
func TestSizes(t *testing.T) {
	t.Parallel()
	at := listen(t, Config{}, world)
	for size, most := range map[uint16]int{0: 512, 100: 512, 700: 700, 4096: maxUDP, 65535: maxUDP} {
		q := question("many.service.drover.", dns.TypeSRV)
		if size > 0 {
			q.SetEdns0(size, false)
		}
		answer := ask(t, "udp", at, q)
		require.True(t, answer.Truncated)
		answer.Compress = true // as it came
		require.LessOrEqual(t, answer.Len(), most)
		require.NotEmpty(t, answer.Answer)
		require.Equal(t, size > 0, answer.IsEdns0() != nil, "who does not know EDNS gets none")
	}
	answer := ask(t, "tcp", at, question("many.service.drover.", dns.TypeA))
	require.False(t, answer.Truncated)
	require.Len(t, answer.Answer, maxRecords)
}

func TestOddQuestions(t *testing.T) {
	t.Parallel()
	at := listen(t, Config{}, world)
	notify, chaos, version := question("web.service.drover.", dns.TypeA), question("web.service.drover.", dns.TypeA), &dns.Msg{}
	notify.Opcode = dns.OpcodeUpdate
	chaos.Question[0].Qclass = dns.ClassCHAOS
	version.SetQuestion("web.service.drover.", dns.TypeA).SetEdns0(1232, false)
	version.IsEdns0().SetVersion(9)
	require.Equal(t, dns.RcodeNotImplemented, ask(t, "udp", at, notify).Rcode)
	require.Equal(t, dns.RcodeRefused, ask(t, "udp", at, chaos).Rcode)
	require.Equal(t, dns.RcodeBadVers, ask(t, "udp", at, version).Rcode)
	require.Empty(t, ask(t, "udp", at, question("web.service.drover.", dns.TypeANY)).Answer)
	require.Empty(t, ask(t, "udp", at, question("web.service.drover.", dns.TypeTXT)).Answer)
	require.Len(t, ask(t, "udp", at, question("drover.", dns.TypeSOA)).Answer, 1)
}

// Strangers get no answer at all.
func TestStrangers(t *testing.T) {
	t.Parallel()
	at := listen(t, Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, world)
	for _, network := range []string{"udp", "tcp"} {
		c := dns.Client{Net: network, Timeout: 200 * time.Millisecond}
		_, _, err := c.ExchangeContext(t.Context(), question("web.service.drover.", dns.TypeA), at)
		require.Error(t, err, network)
	}
}

// Other names are those of the machine's resolvers; one that does not answer is passed over, and a cut answer fetched whole.
func TestForwarding(t *testing.T) {
	t.Parallel()
	gone := "127.0.0.66:53535" // nobody is there: all listen on 127.0.0.1
	upstream := listen(t, Config{Domain: "example.com"}, func(ctx context.Context, _, name string) ([]*service.Registration, error) {
		return world(ctx, "default", name)
	})
	at := listen(t, Config{Recursors: []string{gone, upstream}}, func(ctx context.Context, namespace, name string) (
		[]*service.Registration, error,
	) {
		if name == "alias" {
			return []*service.Registration{{Address: "web.service.example.com", Port: 1}}, nil
		}
		return world(ctx, namespace, name)
	})
	answer := ask(t, "udp", at, question("web.service.example.com.", dns.TypeA))
	require.Equal(t, map[string]int{"192.0.2.1": 1, "192.0.2.2": 1}, said(answer.Answer))
	require.Equal(t, dns.RcodeNameError, ask(t, "udp", at, question("x.service.example.com.", dns.TypeA)).Rcode)
	require.Len(t, ask(t, "tcp", at, question("many.service.example.com.", dns.TypeA)).Answer, maxRecords)
	require.True(t, ask(t, "udp", at, question("many.service.example.com.", dns.TypeA)).Truncated)
	answer = ask(t, "udp", at, question("alias.service.drover.", dns.TypeA))
	require.Equal(t, map[string]int{"web.service.example.com.": 1, "192.0.2.1": 1, "192.0.2.2": 1}, said(answer.Answer))

	lost := listen(t, Config{Recursors: []string{gone}}, world)
	require.Equal(t, dns.RcodeServerFailure, ask(t, "udp", lost, question("www.example.com.", dns.TypeA)).Rcode)
}

// FuzzParse: no name makes the parser fail, and what it takes has a service.
func FuzzParse(f *testing.F) {
	f.Add("a.b.service.c.ns")
	f.Add("_a._tcp.service")
	f.Fuzz(func(t *testing.T, name string) {
		if a, ok := parse(strings.Split(name, ".")); ok && name != "" {
			require.True(t, a.service != "" || strings.Contains(name, "..") || name[0] == '.' || strings.HasPrefix(name, "_"), name)
		}
	})
}
