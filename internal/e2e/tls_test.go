package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// certificate makes an authority and a certificate for loopback, and returns the three files.
func certificate(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drover"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth,
		},
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames: []string{"server.global.drover"}, // it may speak as a server
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	cert = write("cert.pem", "CERTIFICATE", der)
	return cert, cert, write("key.pem", "EC PRIVATE KEY", keyDER)
}

// With TLS the faces and the links are encrypted, and a node without a certificate gets nowhere.
func TestTLSOnEveryListener(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificate(t)
	block := fmt.Sprintf("tls {\n  http = true\n  rpc = true\n  ca_file = %q\n  cert_file = %q\n  key_file = %q\n}\n", ca, cert, key)
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "server"), block)...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	servers := "servers = [\"" + m[1] + "\"]"
	naked := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "naked"), clientBlock(servers))...)...)
	start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), block+clientBlock(servers))...)...)
	c, err := api.NewClient(&api.Config{Address: "https://" + s.addr, TLSConfig: &api.TLSConfig{CACert: ca}})
	require.NoError(t, err)
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := c.Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 1, naked.Output()
	})
	_, _, err = c.Jobs().Register(rawJob("hello", "batch", "/bin/true"), nil)
	require.NoError(t, err)
	allocation(t, c, "hello", "complete")
	eventually(t, "the advice", func() (bool, string) {
		return strings.Contains(naked.Output(), "speaks TLS and this node does not"), naked.Output()
	})
	require.Contains(t, naked.Output(), "level=ERROR")
	plain, err := api.NewClient(&api.Config{Address: "http://" + s.addr})
	require.NoError(t, err)
	_, _, err = plain.Jobs().List(nil)
	require.Error(t, err)
	nodes, _, err := c.Nodes().List(nil)
	require.NoError(t, err)
	require.Len(t, nodes, 1)
}
