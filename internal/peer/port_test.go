package peer

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

// tls is the configuration of who has a certificate of the authority with the names.
func (a *authority) tls(t *testing.T, ends time.Time, names ...string) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: ends, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// logged collects what a port says.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func split(t *testing.T, change func(*Config)) (*Port, *logged) {
	t.Helper()
	out := &logged{}
	cfg := Config{Self: self(Identity{Region: "global"}), Clock: clock.Wall{}, Log: slog.New(slog.NewTextHandler(out, nil))}
	change(&cfg)
	in, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := Split(in, cfg)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, out
}

// self is who a port says that it is.
func self(i Identity) func() Identity { return func() Identity { return i } }

func secret(list ...string) func(*Config) {
	return func(c *Config) { c.Secrets = func(context.Context, string) []string { return list } }
}

func secure(cfg *tls.Config) func(*Config) {
	return func(c *Config) { c.TLS = func() *tls.Config { return cfg } }
}

// echo answers whatever arrives with the listener's name.
func echo(t *testing.T, l net.Listener, name string) {
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			text := make([]byte, 5)
			_, _ = io.ReadFull(c, text)
			_, _ = c.Write([]byte(name + string(text)))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
}

func says(t *testing.T, c net.Conn, want string) {
	t.Helper()
	_, err := c.Write([]byte("PRI *"))
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, want+"PRI *", string(got))
	require.NoError(t, c.Close())
}

// One port serves nodes and both protocols of servers, in clear text and over TLS.
func TestOnePort(t *testing.T) {
	t.Parallel()
	ca, in := newAuthority(t), time.Now().Add(time.Hour)
	for name, of := range map[string]func(*Config){
		"clear": secret("s", "older"), "tls": secure(ca.tls(t, in, "server.global.drover")),
		"nomad's certificate": secure(ca.tls(t, in, "x", "server.global.nomad")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := split(t, of)
			other, _ := split(t, of)
			echo(t, p.Nodes(), "nodes ")
			echo(t, p.Listener(Raft), "raft ")
			echo(t, p.Listener(Forward), "forward ")
			for proto, want := range map[Protocol]string{Raft: "raft ", Forward: "forward "} {
				c, err := other.Dial(t.Context(), proto, p.Addr().String(), Identity{})
				require.NoError(t, err)
				says(t, c, want)
			}
			if p.cfg.TLS == nil {
				c, err := net.Dial("tcp", p.Addr().String())
				require.NoError(t, err)
				says(t, c, "nodes ")
				return
			}
			node := ca.tls(t, in, "client.global.drover")
			node.InsecureSkipVerify, node.NextProtos = true, []string{"h2"} // the test is about what the port sees
			c, err := tls.Dial("tcp", p.Addr().String(), node)
			require.NoError(t, err)
			says(t, c, "nodes ")
		})
	}
}

// Who is no server may not speak as one, and nobody speaks to who is none.
func TestOnlyServersSpeakAsServers(t *testing.T) {
	t.Parallel()
	ca, foreign, in := newAuthority(t), newAuthority(t), time.Now().Add(time.Hour)
	server := secure(ca.tls(t, in, "server.global.drover"))
	bothTrusted := ca.tls(t, in, "server.global.drover") // as the fleet's machines' authority is trusted by a listener
	bothTrusted.ClientCAs = bothTrusted.ClientCAs.Clone()
	bothTrusted.ClientCAs.AddCert(foreign.cert)
	believes := foreign.tls(t, in, "server.global.drover") // it would take the server for one
	believes.RootCAs = ca.tls(t, in).RootCAs
	for name, c := range map[string]struct {
		listens, dials func(*Config)
		want           string // of the dialler's error; "" = it learns it when it reads
		logged         string
	}{
		"another secret":    {secret("a"), secret("b"), "another secret", "another secret"},
		"a removed secret":  {secret("new"), secret("old", "new"), "another secret", "another secret"},
		"no secret":         {secret("a"), secret(), "server.encrypt", ""},
		"secret of neither": {secret(), secret("b"), "gave no proof", "server.encrypt"},
		"node's certificate": {
			server, secure(ca.tls(t, in, "client.global.drover")), "a server's has the name", `a server's has the name \"server.global.drover\"`,
		},
		"another region": {server, secure(ca.tls(t, in, "server.far.drover")), "a server's has the name", "a server's has the name"},
		"machine's":      {secure(bothTrusted), secure(believes), "", "unknown authority"},
		"foreign":        {server, secure(foreign.tls(t, in, "server.global.drover")), "unknown authority", ""},
		"ended":          {server, secure(ca.tls(t, time.Now().Add(-time.Hour), "server.global.drover")), "", "expired"},
		"rogue listener": {secure(ca.tls(t, in, "client.global.drover")), server, "a server's has the name", ""},
		"clear to tls":   {server, secret("a"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, out := split(t, c.listens)
			d, _ := split(t, c.dials)
			conn, err := d.Dial(t.Context(), Raft, p.Addr().String(), Identity{})
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
				require.NoError(t, conn.Close())
			}
			require.Error(t, err)
			require.ErrorContains(t, err, c.want)
			require.NoError(t, p.Close()) // what it had to log is logged
			require.Contains(t, out.String(), c.logged)
			_, err = p.Listener(Raft).Accept()
			require.ErrorIs(t, err, net.ErrClosed, "nothing was handed over")
		})
	}
}

// What gossip says of a region nobody has to believe: a server of another one has no certificate for it, whatever it calls itself.
func TestTheRegionThatIsMeantIsProved(t *testing.T) {
	t.Parallel()
	ca, in := newAuthority(t), time.Now().Add(time.Hour)
	d, _ := split(t, secure(ca.tls(t, in, "server.global.drover")))
	for name, c := range map[string]struct{ cert, means, want string }{
		"it is":             {"server.main.drover", "main", ""},
		"it is, for Nomad":  {"server.main.nomad", "main", ""},
		"nobody is meant":   {"server.far.drover", "", ""},
		"it says so only":   {"server.far.drover", "main", `a server's has the name "server.main.drover"`},
		"one of our region": {"server.global.drover", "main", `a server's has the name "server.main.drover"`},
	} {
		p, _ := split(t, as(Identity{Server: "x", Region: "main"}, secure(ca.tls(t, in, c.cert))))
		echo(t, p.Listener(Forward), "calls ")
		conn, err := d.Dial(t.Context(), Forward, p.Addr().String(), Identity{Region: c.means})
		if c.want == "" {
			require.NoError(t, err, name)
			says(t, conn, "calls ")
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), name)
	}
}

func TestWhatNobodySpeaks(t *testing.T) {
	t.Parallel()
	p, out := split(t, secret("a"))
	for range 3 {
		for text, want := range map[string]string{
			"drover-raft/9\n": "drover-raft/9", "d" + string(bytes.Repeat([]byte("x"), 2*mostSaid)): "buffer full",
		} {
			c, err := net.Dial("tcp", p.Addr().String())
			require.NoError(t, err)
			_, err = c.Write([]byte(text))
			require.NoError(t, err)
			_, _ = io.ReadAll(c) // it is closed, with a reset if something was left unread
			require.NoError(t, c.Close())
			require.Contains(t, out.String(), want)
		}
	}
	require.Equal(t, 2, bytes.Count([]byte(out.String()), []byte("refusing")), "each is told once")
}

// What is more than may wait is closed, and nobody waits for that. Thousands of nodes may dial at once.
func TestMoreThanMayWait(t *testing.T) {
	t.Parallel()
	l := newListener(nil, 1)
	kept, ours := net.Pipe()
	more, theirs := net.Pipe()
	l.put(ours)
	l.put(theirs)
	_, err := more.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	c, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, ours, c)
	require.NoError(t, kept.Close())
	require.GreaterOrEqual(t, cap(newListener(nil, waitingNodes).in), 8000)
}

// A listener that nobody accepts from holds nobody up, and the port closes with connections half way.
func TestClosing(t *testing.T) {
	t.Parallel()
	p, _ := split(t, secret("a"))
	for range waiting + 3 {
		c, err := net.Dial("tcp", p.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte("PRI *"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
	}
	half, err := net.Dial("tcp", p.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = half.Close() })
	_, err = half.Write([]byte("drover-raft/2\n"))
	require.NoError(t, err)
	_, err = io.ReadFull(half, make([]byte, nonceBytes))
	require.NoError(t, err, "it waits for our proof")
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err = p.Nodes().Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = half.Read(make([]byte, 1))
	require.Error(t, err)
	d, _ := split(t, secret("a"))
	_, err = d.Dial(t.Context(), Raft, p.Addr().String(), Identity{})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

// While keys are rotated servers prove different ones, and each takes whichever it has.
func TestAnySecretThatIsKnown(t *testing.T) {
	t.Parallel()
	old, both, fresh := secret("old", "new"), secret("new", "old"), secret("new")
	for name, of := range map[string][2]func(*Config){"before": {old, both}, "between": {both, old}, "after": {fresh, both}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := split(t, of[0])
			echo(t, p.Listener(Raft), "raft ")
			d, _ := split(t, of[1])
			c, err := d.Dial(t.Context(), Raft, p.Addr().String(), Identity{})
			require.NoError(t, err)
			says(t, c, "raft ")
		})
	}
}

// Who is refused for the same reason from another port is told once.
func TestRefusalsAreToldOnce(t *testing.T) {
	t.Parallel()
	var told refusals
	require.True(t, told.first(reset(1)))
	for port := range 5 {
		require.False(t, told.first(reset(port+2)))
	}
	from, err := reset(9)
	require.True(t, told.first(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 9}, err), "another machine")
	require.True(t, told.first(from, io.ErrUnexpectedEOF), "another reason")
}

// reset is what is read from a connection that the other side reset.
func reset(port int) (net.Addr, error) {
	from, to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4647}
	return from, &net.OpError{Op: "read", Net: "tcp", Source: to, Addr: from, Err: syscall.ECONNRESET}
}

// Certificates and authorities are replaced while the port is open: from then on the new ones count.
func TestCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	old, next, in := newAuthority(t), newAuthority(t), time.Now().Add(time.Hour)
	var newest atomic.Pointer[tls.Config]
	newest.Store(old.tls(t, in, "server.global.drover"))
	p, _ := split(t, func(c *Config) { c.TLS = newest.Load })
	echo(t, p.Listener(Raft), "raft ")
	before, _ := split(t, secure(old.tls(t, in, "server.global.drover")))
	after, _ := split(t, secure(next.tls(t, in, "server.global.drover")))
	dial := func(from *Port) error {
		c, err := from.Dial(t.Context(), Raft, p.Addr().String(), Identity{})
		if err == nil {
			_, err = c.Write([]byte("PRI *"))
			require.NoError(t, err)
			_, err = io.ReadAll(c)
			require.NoError(t, c.Close())
		}
		return err
	}
	require.NoError(t, dial(before))
	require.Error(t, dial(after))
	newest.Store(next.tls(t, in, "server.global.drover"))
	require.Error(t, dial(before))
	require.NoError(t, dial(after))
}
