package peer

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// here is the server that is dialled in the tests of identities.
var here = Identity{Server: "here", Region: "global", Cluster: "ours", Oldest: 1, Newest: 2, Writes: 2}

// as has a port say that it is the server.
func as(who Identity, of func(*Config)) func(*Config) {
	return func(c *Config) {
		of(c)
		c.Self = self(who)
	}
}

// changed returns a copy of what the change makes of it.
func (i Identity) changed(change func(*Identity)) Identity {
	change(&i)
	return i
}

// is returns a copy for another server.
func (i Identity) is(server, region, cluster string) Identity {
	i.Server, i.Region, i.Cluster = server, region, cluster
	return i
}

// TestWhoIsNotMeant: a server that is not who is meant, or may not have the log, refuses with the reason, in clear text and over TLS.
// It logs that once, the dialler hears it, and nobody gets the connection.
func TestWhoIsNotMeant(t *testing.T) {
	t.Parallel()
	there := here.changed(func(i *Identity) { i.Server = "there" })
	ca, in := newAuthority(t), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		self, from, to Identity
		proto          Protocol
		want           string // "" = it is taken
	}{
		"meant":           {here, there, here, Raft, ""},
		"anybody":         {here, there, Identity{}, Raft, ""},
		"empty, meant":    {here.is("here", "global", ""), there, here, Raft, ""},
		"another":         {here, there, there, Raft, "who dialled means server there, and this is server here"},
		"empty, another":  {here.is("new", "global", ""), there, here, Raft, "who dialled means server here, and this is server new"},
		"another's calls": {here.is("new", "global", ""), there, here, Forward, "who dialled means server here, and this is server new"},
		"another cluster": {here, there, here.is("here", "global", "theirs"), Raft, "means cluster theirs, and this is cluster ours"},
		"another region":  {here, there, here.is("here", "far", "ours"), Forward, "means region far, and this is region global"},
		"all three": {
			here, there,
			Identity{Server: "x", Region: "far", Cluster: "theirs"},
			Raft,
			"means server x of cluster theirs of region far, and this is server here of cluster ours of region global",
		},
		"from afar":       {here, there.is("there", "far", "theirs"), here, Raft, "there is of region far, and the log of region global is its"},
		"calls from afar": {here, there.is("there", "far", "theirs"), here, Forward, ""},
		"cannot read": {
			here.changed(func(i *Identity) { i.Newest, i.Writes = 3, 3 }), there, here, Raft,
			"the program of server there reads versions 1 to 2 of the log, and this cluster writes version 3",
		},
		"can not be read": {
			here.is("here", "global", "").changed(func(i *Identity) { i.Writes = 0 }),
			there.changed(func(i *Identity) { i.Newest, i.Writes = 3, 3 }), here, Raft,
			"the program of this server reads versions 1 to 2 of the log, and this cluster writes version 3",
		},
	} {
		for kind, of := range map[string]func(*Config){"clear": secret("s"), "tls": secure(ca.tls(t, in, "server.global.drover"))} {
			if kind == "tls" && (name == "from afar" || name == "another region") { // certificates refuse it: TestOnlyServersSpeakAsServers
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				p, out := split(t, as(c.self, of))
				d, _ := split(t, as(c.from, of))
				if c.want == "" {
					echo(t, p.Listener(c.proto), "taken ")
					conn, err := d.Dial(t.Context(), c.proto, p.Addr().String(), c.to)
					require.NoError(t, err)
					says(t, conn, "taken ")
					return
				}
				for range 3 {
					_, err := d.Dial(t.Context(), c.proto, p.Addr().String(), c.to)
					require.ErrorContains(t, err, c.want)
					require.Equal(t, drover.Unavailable, drover.CodeOf(err))
					refused, ok := errors.AsType[*Refused](err)
					require.True(t, ok)
					require.Equal(t, c.self, refused.By)
				}
				require.NoError(t, p.Close()) // what it had to log is logged
				require.Equal(t, 1, bytes.Count([]byte(out.String()), []byte(c.want)), out.String())
				_, err := p.Listener(c.proto).Accept()
				require.ErrorIs(t, err, net.ErrClosed, "nothing was handed over")
			})
		}
	}
}

// before has a port speak as a program did that knew nothing of identities: it dials and takes the older protocols only.
func before(t *testing.T, cfg *tls.Config, proto Protocol) (dial func(address string) (io.ReadWriteCloser, error), address string) {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Port{cfg: Config{Self: self(Identity{Region: "global"})}}
	secret("s")(&p.cfg)
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			_ = p.takeOld(t, c, cfg, proto)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = in.Close(); <-done })
	return func(address string) (io.ReadWriteCloser, error) {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		if cfg != nil {
			client := cfg.Clone()
			client.NextProtos, client.InsecureSkipVerify = []string{string(proto)}, true
			secure := tls.Client(c, client)
			return secure, secure.HandshakeContext(t.Context())
		}
		_, err = c.Write([]byte(greeting(proto)))
		require.NoError(t, err)
		return c, p.prove(t.Context(), c, proto, address, true)
	}, in.Addr().String()
}

// takeOld answers a connection as a program of before.
func (p *Port) takeOld(t *testing.T, c net.Conn, cfg *tls.Config, proto Protocol) error {
	r := bufio.NewReader(c)
	if cfg != nil {
		server := cfg.Clone()
		server.NextProtos = []string{string(proto), "h2"}
		secure := tls.Server(c, server)
		if err := secure.HandshakeContext(t.Context()); err != nil {
			return err
		}
		_, err := io.CopyN(secure, secure, 5)
		return err
	}
	if line, err := r.ReadString('\n'); err != nil || line != greeting(proto) {
		return errors.Join(err, errSilent)
	}
	if err := p.prove(t.Context(), &peeked{c, r}, proto, "", false); err != nil {
		return err
	}
	_, err := io.CopyN(c, r, 5)
	return err
}

// TestProgramsOfBefore: while the cluster writes version 1, servers with a program that knows nothing of identities are spoken with as
// before. Later they have no part in the log, with the reason, and only their requests are heard.
func TestProgramsOfBefore(t *testing.T) {
	t.Parallel()
	ca, in := newAuthority(t), time.Now().Add(time.Hour)
	for kind, cfg := range map[string]*tls.Config{"clear": nil, "tls": ca.tls(t, in, "server.global.drover")} {
		of := secret("s")
		if cfg != nil {
			of = secure(cfg)
		}
		for proto, old := range map[Protocol]Protocol{Raft: "drover-raft/1", Forward: "drover-forward/1"} {
			for writes := range 3 {
				t.Run(kind+" "+string(old)+" "+string(rune('0'+writes)), func(t *testing.T) {
					t.Parallel()
					p, out := split(t, as(here.changed(func(i *Identity) { i.Writes = writes }), of))
					echo(t, p.Listener(proto), "taken ")
					dial, address := before(t, cfg, old)
					taken := proto == Forward || writes <= 1

					c, err := dial(p.Addr().String())
					require.NoError(t, err)
					// Who refuses may have closed it by now: then writing and saying goodbye fail, and if something was left unread, so does reading.
					_, wrote := c.Write([]byte("PRI *"))
					answer, _ := io.ReadAll(c)
					closed := c.Close()
					back, err := p.Dial(t.Context(), proto, address, here)
					if taken {
						require.NoError(t, errors.Join(wrote, closed))
						require.Equal(t, "taken PRI *", string(answer))
						require.NoError(t, err)
						says(t, back, "")
						return
					}
					require.Empty(t, answer)
					require.ErrorContains(t, err, "its program may be an older one, which does not speak drover-raft/2")
					require.NoError(t, p.Close())
					require.Equal(t, 1, bytes.Count([]byte(out.String()), []byte("its program is older than version 2 of the log")), out.String())
				})
			}
		}
	}
}

// Who says nonsense instead of whom it means is refused.
func TestNonsenseInsteadOfAnIdentity(t *testing.T) {
	t.Parallel()
	long := string(bytes.Repeat([]byte("x"), mostSaid+1))
	for text, want := range map[string]string{"nonsense\n": "invalid character", long: "buffer full"} {
		p, out := split(t, as(here, secret("s")))
		c, err := net.Dial("tcp", p.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte(greeting(Raft)))
		require.NoError(t, err)
		require.NoError(t, p.prove(t.Context(), c, Raft, "x", true))
		_, err = c.Write([]byte(text))
		require.NoError(t, err)
		_, _ = io.ReadAll(c)
		require.NoError(t, c.Close())
		require.NoError(t, p.Close())
		require.Contains(t, out.String(), want)
	}
}
