package gate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// request returns a new key and a request for it, in PEM, that asks for a name.
func request(t *testing.T, name string) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
	}, private)
	require.NoError(t, err)
	return private, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func leafOf(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(text)
	require.Empty(t, rest)
	leaf, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return leaf
}

func verify(a *Authority, leaf *x509.Certificate, at time.Time, use x509.ExtKeyUsage) ([][]*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}})
}

func TestEveryServerHasTheSameAuthority(t *testing.T) {
	t.Parallel()
	a, err := NewAuthority([]byte("key"))
	require.NoError(t, err)
	again, err := NewAuthority([]byte("key"))
	require.NoError(t, err)
	require.True(t, a.cert.Equal(again.cert))
	other, err := NewAuthority([]byte("another"))
	require.NoError(t, err)
	require.False(t, a.cert.Equal(other.cert))
}

func TestACertificateNamesItsMachineForAYear(t *testing.T) {
	t.Parallel()
	a, err := NewAuthority([]byte("key"))
	require.NoError(t, err)
	_, csr := request(t, "i2")
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	text, err := a.Certify(csr, "i1", now)
	require.NoError(t, err)
	leaf := leafOf(t, text)
	require.Equal(t, "i1", leaf.Subject.CommonName, "whatever name was asked for")
	require.Empty(t, leaf.DNSNames)
	require.False(t, leaf.IsCA)
	for at, good := range map[time.Time]bool{
		now.Add(-2 * time.Hour): false, now: true, now.Add(364 * 24 * time.Hour): true, now.Add(366 * 24 * time.Hour): false,
	} {
		_, err := verify(a, leaf, at, x509.ExtKeyUsageClientAuth)
		require.Equal(t, good, err == nil, "%s: %v", at, err)
	}
	_, err = verify(a, leaf, now, x509.ExtKeyUsageServerAuth)
	require.Error(t, err, "it can't pose as a server")
}

func TestRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	a, err := NewAuthority([]byte("key"))
	require.NoError(t, err)
	_, csr := request(t, "x")
	block, _ := pem.Decode(csr)
	forged := append([]byte(nil), block.Bytes...)
	forged[len(forged)-1] ^= 1 // not signed by the key that it is for
	for _, text := range [][]byte{
		nil, []byte("nonsense"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{1}}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: forged}),
	} {
		_, err := a.Certify(text, "i1", time.Now())
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", err)
	}
}

func TestCertificatesAreOfOneNode(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := w.with(Config{Certified: true})
	_, csr := request(t, "")
	ask := func(node, secret, token string) error {
		_, err := g.Certify(t.Context(), applicant(node, secret, token), csr)
		return err
	}
	unauthorized(t, ask("n1", "s", "i1.forged"), "not one of this fleet's")
	unauthorized(t, ask("n1", "s", w.token("i9")), "does not have any more")
	require.Equal(t, drover.Invalid, drover.CodeOf(ask("", "s", w.token("i1"))))
	text, err := g.Certify(t.Context(), applicant("n1", "s", w.token("i1")), csr)
	require.NoError(t, err)
	require.Equal(t, "i1", leafOf(t, text).Subject.CommonName)
	require.Equal(t, "n1", w.instances["i1"].NodeID, "who asks first has the token")
	unauthorized(t, ask("n2", "s", w.token("i1")), "machine i1 is of node n1")
	w.nodes["n1"] = &drover.Node{ID: "n1", SecretID: "s"}
	require.NoError(t, ask("n1", "s", w.token("i1")))
	unauthorized(t, ask("n1", "guessed", w.token("i1")), "wrong secret")

	w.identity = nil
	g = w.with(Config{})
	require.Equal(t, drover.Unavailable, drover.CodeOf(ask("n1", "s", w.token("i1"))))
	_, err = g.Authority()
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

// machineWithCertificate returns a gate where links are mutual, and the chains of machine i1's certificate.
func machineWithCertificate(t *testing.T) (*world, *Gate, [][]*x509.Certificate) {
	t.Helper()
	w := newWorld()
	g := w.with(Config{Certified: true})
	a, err := g.Authority()
	require.NoError(t, err)
	_, csr := request(t, "")
	text, err := a.Certify(csr, "i1", time.Now())
	require.NoError(t, err)
	chains, err := verify(a, leafOf(t, text), time.Now(), x509.ExtKeyUsageClientAuth)
	require.NoError(t, err)
	return w, g, chains
}

func TestWhoPassesWhereLinksAreMutual(t *testing.T) {
	t.Parallel()
	w, g, chains := machineWithCertificate(t)
	other, err := NewAuthority([]byte("the configured one"))
	require.NoError(t, err)
	w.instances["i2"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i2", State: fleet.InstanceActive}}
	machine := &tls.ConnectionState{VerifiedChains: chains}
	unauthorized(t, Allow(g, nil, "n1", w.token("i1")), "a client certificate is needed")
	unauthorized(t, Allow(g, &tls.ConnectionState{}, "n1", w.token("i1")), "a client certificate is needed")
	require.NoError(t, Allow(g, machine, "n1", w.token("i1")))
	unauthorized(t, Allow(g, machine, "n1", w.token("i2")), "not of the machine that the token is of")
	unauthorized(t, Allow(g, machine, "n1", ""), "not of the machine")
	delete(w.instances, "i1")
	unauthorized(t, Allow(g, machine, "n1", w.token("i1")), "or that is gone")
	require.NoError(t, Allow(g, &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{other.cert}}}, "n1", ""), "a server's node")
	w.identity = nil
	require.Equal(t, drover.Unavailable, drover.CodeOf(Allow(w.with(Config{}), machine, "n1", "")))
}

// The listener takes both kinds of certificate, and none; a stranger's certificate it refuses.
func TestListenersTrustMachines(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := w.with(Config{Certified: true})
	a, err := g.Authority()
	require.NoError(t, err)
	configured, own := selfSigned(t), x509.NewCertPool()
	own.AddCert(configured.Leaf)
	mutual := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{configured}, ClientCAs: own,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	private, csr := request(t, "")
	text, err := a.Certify(csr, "i1", time.Now())
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	machine := tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: private}
	for _, c := range []struct {
		name   string
		shown  []tls.Certificate
		opened bool
		good   bool
	}{
		{"a machine", []tls.Certificate{machine}, true, true},
		{"a server's node", []tls.Certificate{configured}, true, true},
		{"nobody", nil, true, true},
		{"a stranger", []tls.Certificate{selfSigned(t)}, true, false},
		{"nobody, before there is a fleet", nil, false, false},
	} {
		r := g
		if !c.opened {
			none := newWorld()
			none.identity = nil
			r = none.with(Config{})
		}
		near, far := net.Pipe()
		go func() { // ends with the pipe
			client := tls.Client(near, &tls.Config{
				InsecureSkipVerify: true, NextProtos: []string{"h2"},
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // the server is the one that is tried
					if len(c.shown) == 0 {
						return &tls.Certificate{}, nil
					}
					return &c.shown[0], nil
				},
			})
			_ = client.Handshake()
			_, _ = client.Read(make([]byte, 1)) // an alert comes after the handshake
			_ = near.Close()
		}()
		err := tls.Server(far, TLS(r, func() *tls.Config { return mutual })).Handshake()
		_ = far.Close()
		require.Equal(t, c.good, err == nil, "%s: %v", c.name, err)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}
}
