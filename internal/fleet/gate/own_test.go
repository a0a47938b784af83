package gate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/tlspin"
)

func names() []string { return []string{"server.global.drover", "127.0.0.1", "drover.example"} }

func openOwn(t *testing.T, folder, secret string) *Own {
	t.Helper()
	o, err := OpenOwn(folder, secret, names, clock.Wall{})
	require.NoError(t, err)
	return o
}

// shown is what the server shows.
func shown(t *testing.T, o *Own) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(o.CertFile(), o.CertFile())
	require.NoError(t, err)
	return pair
}

// The authority is made once; servers with a secret in common have the same one, and believe each other, whoever signed.
func TestAServerMakesItsAuthorityOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	by := func(name, secret string) *Own { return openOwn(t, filepath.Join(dir, name), secret) }
	first, again, other := by("a", ""), by("a", ""), by("b", "")
	require.Equal(t, first.Pin(), again.Pin())
	require.NotEqual(t, first.Pin(), other.Pin())
	require.Equal(t, first.Pin(), by("a", "a secret that came later").Pin(), "nodes know the kept one")
	one, two, three := by("c", "shared"), by("d", "shared"), by("e", "another")
	require.Equal(t, one.Pin(), two.Pin())
	require.NotEqual(t, one.Pin(), three.Pin())
	for _, f := range []string{"ca.pem", "ca-key.pem", "server.pem"} {
		info, err := os.Stat(filepath.Join(dir, "a", f))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), f)
	}
	roots := x509.NewCertPool()
	text, err := os.ReadFile(one.CAFile())
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(text))
	for _, name := range names() {
		_, err = shown(t, two).Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		require.NoError(t, err, name)
	}
	_, err = shown(t, three).Leaf.Verify(x509.VerifyOptions{Roots: roots})
	require.Error(t, err)
	require.Len(t, shown(t, one).Certificate, 2, "nodes see the authority")
}

// Files that are broken are never replaced by others: all nodes would refuse the server.
func TestABrokenAuthorityIsNotReplaced(t *testing.T) {
	t.Parallel()
	const empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	for _, c := range [][2]string{{"ca-key.pem", ""}, {"ca.pem", "nonsense"}, {"ca-key.pem", "nonsense"}, {"ca.pem", empty}} {
		dir, text := t.TempDir(), c[1]
		openOwn(t, dir, "")
		path := filepath.Join(dir, c[0])
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := OpenOwn(dir, "", names, clock.Wall{})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%s: %v", path, err)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "restore it, or remove "+dir)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(after))
		require.NoError(t, os.Remove(path))
		if c[0] == "ca-key.pem" {
			_, err = OpenOwn(dir, "", names, clock.Wall{})
			require.ErrorContains(t, err, "is not there, and the certificate that it belongs to is")
		} else {
			openOwn(t, dir, "") // a crash came before it was written
		}
	}
	mixed, other := t.TempDir(), t.TempDir()
	openOwn(t, mixed, "")
	openOwn(t, other, "")
	text, err := os.ReadFile(filepath.Join(other, "ca.pem"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(mixed, "ca.pem"), text, 0o600))
	_, err = OpenOwn(mixed, "", names, clock.Wall{})
	require.ErrorContains(t, err, "not of the key in ca-key.pem")
}

// It is renewed at half of its time, by the same authority, and at once if the clock was set back before its beginning.
func TestAServerRenewsItsCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := openOwn(t, dir, "")
		first, pin := shown(t, o).Leaf, o.Pin()
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan time.Time)
		go func() { // ends with ctx
			_ = o.Run(ctx, slog.New(slog.DiscardHandler), func() error { taken <- time.Now(); return nil })
		}()
		at := <-taken
		require.InDelta(t, 15*24, at.Sub(first.NotBefore).Hours(), 2)
		next := shown(t, o).Leaf
		require.NotEqual(t, first.SerialNumber, next.SerialNumber)
		require.NotEqual(t, first.PublicKey, next.PublicKey)
		require.Equal(t, pin, o.Pin())
		<-taken
		require.True(t, tlspin.Due(next, next.NotBefore.Add(-time.Second)))
		cancel()
		synctest.Wait()
	})
}

// Where servers have an authority of their own, a node gets a certificate for what lets it register: it names the node, and serves that
// node alone. Machines of the fleet get theirs beside.
func TestAnOrdinaryNodeGetsACertificate(t *testing.T) {
	t.Parallel()
	w, own := newWorld(), openOwn(t, t.TempDir(), "").Authority()
	g := w.with(Config{JoinToken: "secret", Certified: true, Own: own})
	_, csr := request(t, "server.global.drover")
	ask := func(g *Gate, node, secret, token string) ([]byte, error) {
		return g.Certify(t.Context(), applicant(node, secret, token), csr)
	}
	text, err := ask(g, "n1", "s", "secret")
	require.NoError(t, err)
	leaf := leafOf(t, text)
	require.Equal(t, "n1", leaf.Subject.CommonName)
	require.Empty(t, leaf.DNSNames, "whatever was asked for: it must not be taken for a server")
	_, err = verify(own, leaf, time.Now(), x509.ExtKeyUsageServerAuth)
	require.Error(t, err)
	chains, err := verify(own, leaf, time.Now(), x509.ExtKeyUsageClientAuth)
	require.NoError(t, err)
	require.InDelta(t, 30, time.Until(leaf.NotAfter).Hours()/24, 0.1)

	conn := &tls.ConnectionState{VerifiedChains: chains}
	require.NoError(t, Allow(g, conn, "n1", ""))
	unauthorized(t, Allow(g, conn, "n2", "secret"), "the certificate is of node n1")
	unauthorized(t, Allow(g, conn, "", "secret"), "the certificate is of node n1")
	server := &x509.Certificate{DNSNames: []string{"server.global.drover"}}
	another := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{server, own.cert}}}
	require.NoError(t, Allow(g, another, "n2", ""), "another server's node")

	_, err = ask(g, "n1", "s", "guessed")
	unauthorized(t, err, "wrong join token")
	_, err = ask(g, "n1", "s", "")
	unauthorized(t, err, "a join token is needed")
	_, err = ask(g, "", "", "secret")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	w.nodes["n1"] = &drover.Node{ID: "n1", SecretID: "s"}
	_, err = ask(g, "n1", "guessed", "secret")
	unauthorized(t, err, "wrong secret")
	_, err = ask(w.with(Config{JoinToken: "secret", Own: own, Strict: true}), "n3", "s", "secret")
	unauthorized(t, err, "client_introduction.enforcement is strict")

	text, err = ask(g, "m1", "s", w.token("i1"))
	require.NoError(t, err)
	fleets, err := g.Authority()
	require.NoError(t, err)
	_, err = verify(fleets, leafOf(t, text), time.Now(), x509.ExtKeyUsageClientAuth)
	require.NoError(t, err, "a machine's is of the fleet's authority")

	w.identity = nil
	_, err = ask(g, "n4", "s", "secret")
	require.NoError(t, err, "there need be no fleet")
	_, err = ask(g, "m1", "s", "i1.whatever")
	unauthorized(t, err, "wrong join token")
	_, err = ask(w.with(Config{JoinToken: "secret", Own: own, Buys: true}), "m1", "s", "i1.whatever")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it would power itself off: %v", err)
	require.NoError(t, Allow(g, conn, "n1", ""))
}

// Who has no certificate gets as far as asking for one, also where there is no fleet.
func TestTheListenerLetsInWhoMayAsk(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.identity = nil
	g := w.with(Config{JoinToken: "secret", Own: openOwn(t, t.TempDir(), "").Authority()})
	mutual := func() *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert}
	}
	cfg, err := TLS(g, mutual).GetConfigForClient(nil)
	require.NoError(t, err)
	require.Equal(t, tls.VerifyClientCertIfGiven, cfg.ClientAuth)
	cfg, err = TLS(w.with(Config{}), mutual).GetConfigForClient(nil)
	require.NoError(t, err)
	require.Equal(t, tls.RequireAndVerifyClientCert, cfg.ClientAuth)
}

// The file has what nodes are given; the server compares the secret alone.
func TestTheTokensFileHasThePin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := openOwn(t, filepath.Join(dir, "tls"), "")
	read := func() string {
		text, err := ReadToken(filepath.Join(dir, TokenFile))
		require.NoError(t, err)
		return text
	}
	before, err := keptToken(dir, "")
	require.NoError(t, err)
	require.Equal(t, before, read())
	secret, err := keptToken(dir, own.Pin())
	require.NoError(t, err)
	require.Equal(t, before, secret, "nodes that have it stay")
	require.Equal(t, before+"@"+own.Pin(), read())
	secret, err = keptToken(dir, "")
	require.NoError(t, err)
	require.Equal(t, before, secret)
	require.Equal(t, before, read())
	require.NoError(t, os.WriteFile(filepath.Join(dir, TokenFile), []byte("x@sha256:12\n"), 0o600))
	_, err = keptToken(dir, own.Pin())
	require.ErrorContains(t, err, "copy it whole")
}
