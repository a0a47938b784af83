package netguard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// registry are the entries of IANA's registries of special-purpose addresses for IPv4 and IPv6 (2025-10), each with its first
// and an address from its midst. Beside them stands what IANA keeps elsewhere: multicast, reserved for translation, deprecated.
// A last word says what is to become of them: "private", "embedded" (as the IPv4 address inside), else refused.
const registry = `
0.0.0.0/8 0.1.2.3
0.0.0.0/32 0.0.0.0
10.0.0.0/8 10.1.2.3 private
100.64.0.0/10 100.100.100.200
127.0.0.0/8 127.0.0.1
169.254.0.0/16 169.254.169.254
172.16.0.0/12 172.31.255.254 private
192.0.0.0/24 192.0.0.192
192.0.0.0/29 192.0.0.1
192.0.0.8/32 192.0.0.8
192.0.0.9/32 192.0.0.9
192.0.0.10/32 192.0.0.10
192.0.0.170/32 192.0.0.170
192.0.0.171/32 192.0.0.171
192.0.2.0/24 192.0.2.77
192.31.196.0/24 192.31.196.1
192.52.193.0/24 192.52.193.1
192.88.99.0/24 192.88.99.1
192.168.0.0/16 192.168.1.1 private
192.175.48.0/24 192.175.48.1
198.18.0.0/15 198.19.255.255
198.51.100.0/24 198.51.100.1
203.0.113.0/24 203.0.113.1
240.0.0.0/4 254.1.2.3
255.255.255.255/32 255.255.255.255
224.0.0.0/4 239.255.255.250
::1/128 ::1
::/128 ::
::/96 ::7f00:1
::ffff:0:0/96 ::ffff:127.0.0.1
::ffff:0:0/96 ::ffff:10.0.0.1 private
64:ff9b::/96 64:ff9b::7f00:1
64:ff9b::/96 64:ff9b::a9fe:a9fe
64:ff9b::/96 64:ff9b::a00:1 private
64:ff9b::/96 64:ff9b::ffff:ffff
64:ff9b:1::/48 64:ff9b:1::7f00:1
100::/64 100::1
100:0:0:1::/64 100:0:0:1::1
2001::/23 2001:1ff::1
2001::/32 2001::1
2001:1::1/128 2001:1::1
2001:1::2/128 2001:1::2
2001:1::3/128 2001:1::3
2001:2::/48 2001:2::1
2001:3::/32 2001:3::1
2001:4:112::/48 2001:4:112::1
2001:10::/28 2001:10::1
2001:20::/28 2001:20::1
2001:30::/28 2001:30::1
2001:db8::/32 2001:db8::1
2002::/16 2002:7f00:1::1
2620:4f:8000::/48 2620:4f:8000::1
3fff::/20 3fff::1
5f00::/16 5f00::1
fc00::/7 fd12:3456::1 private
fe80::/10 fe80::1%eth0
fec0::/10 fec0::1
ff00::/8 ff02::1
4000::/3 4000::1
168.63.129.16/32 168.63.129.16
fd00:ec2::/32 fd00:ec2::254
fd20:ce::/32 fd20:ce::254
`

func none() []netip.Addr { return nil }

func TestSpecialAddressesAreRefused(t *testing.T) {
	t.Parallel()
	public, lan := &Guard{What: "it", Key: "k", Own: none}, &Guard{What: "it", Key: "k", Private: true, Own: none}
	for line := range strings.Lines(strings.TrimSpace(registry)) {
		fields := strings.Fields(line)
		ip, network := netip.MustParseAddr(fields[1]), netip.MustParsePrefix(fields[0])
		require.True(t, network.Contains(ip.WithZone("")), line)
		require.Equal(t, drover.Forbidden, drover.CodeOf(public.Check(ip)), line)
		err := lan.Check(ip)
		require.Equal(t, len(fields) == 3, err == nil, "%s: %v", line, err)
		allowed := &Guard{Allow: []netip.Prefix{netip.PrefixFrom(plain(ip), plain(ip).BitLen())}, Own: none}
		require.NoError(t, allowed.Check(ip), line)
	}
	for _, a := range []string{
		"1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255",
		"169.253.1.1", "11.0.0.1",
		"2606:2800:220:1::1", "2001:200::1", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2003::1",
	} {
		require.NoError(t, public.Check(netip.MustParseAddr(a)), a)
	}
	require.Error(t, public.Check(netip.Addr{}))
}

func TestErrorsNameTheKey(t *testing.T) {
	t.Parallel()
	g := &Guard{What: "the artifact's address", Key: `client { artifact { allow = [...] } }`, Own: none}
	require.EqualError(t, g.Check(netip.MustParseAddr("169.254.169.254")),
		"the artifact's address 169.254.169.254 is a link-local address, and client { artifact { allow = [...] } } does not name it")
	require.ErrorContains(t, g.Check(netip.MustParseAddr("100.100.100.200")), "a cloud's metadata service")
	for _, host := range []string{"localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "::1", "::ffff:7f00:1", "fe80::1%lo"} {
		require.Equal(t, drover.Forbidden, drover.CodeOf(g.CheckHost(host)), host)
	}
	for _, host := range []string{"example.org", "localhost.example.org", "1.1.1.1", "", "0x7f.1", "2130706433"} {
		require.NoError(t, g.CheckHost(host), host) // names, or what resolvers take for one: seen when it is dialled
	}
}

func TestOwnAddressesAreRefused(t *testing.T) {
	t.Parallel()
	g := &Guard{Private: true, Own: func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("::ffff:5.5.5.5")}
	}}
	require.ErrorContains(t, g.Check(netip.MustParseAddr("10.0.0.5")), "this machine's own")
	require.Error(t, g.Check(netip.MustParseAddr("5.5.5.5")))
	require.NoError(t, g.Check(netip.MustParseAddr("10.0.0.6")))
	all := ownAddresses()
	require.Contains(t, all, netip.MustParseAddr("127.0.0.1"))
}

// What a name stands for is judged when it is dialled, however it is written.
func TestDialledAddressesAreJudged(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer s.Close()
	port := s.Listener.Addr().(*net.TCPAddr).Port
	g := &Guard{What: "it", Key: "k", Private: true}
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "0x7f000001", "2130706433", "ip6-localhost",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s:%d/", host, port), nil)
		require.NoError(t, err)
		_, err = g.Client(time.Minute).Do(req)
		require.Error(t, err, host)
	}
	_, err := g.Dialer(time.Minute).DialContext(t.Context(), "tcp", fmt.Sprintf("localhost:%d", port))
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
}

// A redirect is a request as every other, and takes no credentials to another host.
func TestRedirects(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- "other:" + r.Header.Get("X-Token") + r.Header.Get("Authorization")
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + ":" + r.Header.Get("X-Token")
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	defer s.Close()
	g := &Guard{What: "it", Key: "k", Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	get := func(path string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		req.Header.Set("X-Token", "secret")
		req.Header.Set("Authorization", "Basic secret")
		res, err := g.Client(time.Minute).Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	require.NoError(t, get("/same"))
	require.Equal(t, []string{"/same:secret", "/end:secret"}, []string{<-seen, <-seen})
	require.NoError(t, get("/other"))
	require.Equal(t, []string{"/other:secret", "other:"}, []string{<-seen, <-seen})
	require.Equal(t, drover.Forbidden, drover.CodeOf(get("/metadata")))
	<-seen
	require.ErrorContains(t, get("/loop"), "stopped after 10 redirects")
}

func TestCredentialsStayWithTheirScheme(t *testing.T) {
	t.Parallel()
	at := func(text string) *http.Request {
		u, err := url.Parse(text)
		require.NoError(t, err)
		return (&http.Request{URL: u, Header: http.Header{"X": {"secret"}}}).WithContext(context.Background())
	}
	for next, kept := range map[string]bool{"https://a/b": true, "http://a/b": false, "https://a:444/": false, "https://b.a/": false} {
		r := at(next)
		require.NoError(t, withoutCredentials(r, []*http.Request{at("https://a/")}))
		require.Equal(t, kept, r.Header.Get("X") != "", next)
	}
}
