package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server is known by its address or by a server's name; a node's certificate of the same authority is not enough, and
// another authority's is none.
func TestWhichServersANodeBelieves(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	issued := func(use x509.ExtKeyUsage, names ...string) tls.Certificate {
		c := &x509.Certificate{
			SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{use},
		}
		der, err := x509.CreateCertificate(rand.Reader, c, authority, key.Public(), key)
		require.NoError(t, err)
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	require.NoError(t, err)
	root, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(root)
	names := []string{"server.global.drover"}
	for name, c := range map[string]struct {
		shows tls.Certificate
		roots *x509.CertPool
		ok    bool
	}{
		"its address":       {issued(x509.ExtKeyUsageServerAuth, "s1.example"), trusted, true},
		"a server's name":   {issued(x509.ExtKeyUsageServerAuth, "server.global.drover"), trusted, true},
		"another name":      {issued(x509.ExtKeyUsageServerAuth, "node.example"), trusted, false},
		"a client's":        {issued(x509.ExtKeyUsageClientAuth, "server.global.drover"), trusted, false},
		"another authority": {issued(x509.ExtKeyUsageServerAuth, "server.global.drover"), x509.NewCertPool(), false},
	} {
		here, there := net.Pipe()
		server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{c.shows}, MinVersion: tls.VersionTLS13})
		done := shaking(server)
		client := tls.Client(here, named(&tls.Config{RootCAs: c.roots, ServerName: "s1.example", MinVersion: tls.VersionTLS13}, names))
		err := client.HandshakeContext(t.Context())
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
		_, _ = here.Close(), there.Close()
		<-done
	}
}

// shaking shakes hands in a goroutine that ends when the connection does.
func shaking(c *tls.Conn) <-chan struct{} {
	done := make(chan struct{})
	go func() { // ends with the handshake
		defer close(done)
		_ = c.Handshake()
		_, _ = c.Read(make([]byte, 1))
	}()
	return done
}
