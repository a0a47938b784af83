package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func certificate(t *testing.T, template *x509.Certificate) (string, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	c, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), c
}

// TestRevokeRequests: what is revoked has one name however it is written, and what nobody could have meant is refused.
func TestRevokeRequests(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	sum := strings.Repeat("ab", 32)
	for id, want := range map[string]string{
		"node:3f2c":                          "node:3f2c",
		"serial:255":                         "serial:ff",
		"serial:0x00FF":                      "serial:ff",
		"serial:00:ff":                       "serial:ff",
		"serial:4A3F":                        "serial:4a3f",
		"sha256:" + sum:                      "sha256:" + sum,
		"sha256:AB:" + sum[2:]:               "sha256:" + sum,
		"node:":                              "ID: node:\"\" names no node",
		"node:a b":                           "names no node",
		"node:a/b":                           "names no node",
		"serial:":                            "is no serial number",
		"serial:0":                           "is no serial number",
		"serial:-5":                          "is no serial number",
		"serial:+5":                          "is no serial number",
		"serial:1_0":                         "is no serial number",
		"serial:xyz":                         "is no serial number",
		"sha256:ab":                          "64 hexadecimal digits",
		"sha256:" + sum[:62] + "zz":          "64 hexadecimal digits",
		"name:x":                             "names neither",
		"":                                   "ID, Certificate: set one of them",
		"serial:" + strings.Repeat("9", 300): "is no serial number",
	} {
		r, err := RevokeRequest{ID: id}.Revocation(now)
		if err != nil {
			require.Equal(t, drover.Invalid, drover.CodeOf(err), id)
			require.ErrorContains(t, err, want, id)
			continue
		}
		require.Equal(t, want, r.ID, id)
		require.Equal(t, strings.HasPrefix(id, "node:"), r.ExpireTime != 0, id)
	}
	_, err := RevokeRequest{ID: "node:a", Reason: strings.Repeat("x", 257)}.Revocation(now)
	require.ErrorContains(t, err, "Reason: has 257 bytes")
	_, err = RevokeRequest{ID: "node:a", ExpireTime: now.UnixNano()}.Revocation(now)
	require.ErrorContains(t, err, "ExpireTime: the certificate has ended on 2027-01-15T08:00:00Z")
}

// TestRevokedCertificates: a node's certificate stands for the node, any other for itself, to its end.
func TestRevokedCertificates(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	node := &x509.Certificate{
		SerialNumber: big.NewInt(255), Subject: pkix.Name{CommonName: "3f2c"}, NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	text, c := certificate(t, node)
	r, err := RevokeRequest{Certificate: text, Reason: "stolen"}.Revocation(now)
	require.NoError(t, err)
	require.Equal(t, &Revocation{
		ID: "node:3f2c", Subject: "3f2c", Reason: "stolen", CreateTime: now.UnixNano(), ExpireTime: now.Add(400 * 24 * time.Hour).UnixNano(),
	}, r)
	ids := RevokedBy(c)
	require.Len(t, ids, 3)
	require.Equal(t, []string{"node:3f2c", "serial:ff"}, []string{ids[0], ids[2]})
	require.ErrorContains(t, r.Refusal(), `node:3f2c is revoked: "drover tls cert reinstate node:3f2c" takes that back`)

	server := *node
	server.DNSNames, server.ExtKeyUsage = []string{"server.global.drover"}, append(server.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	text, c = certificate(t, &server)
	r, err = RevokeRequest{Certificate: text + "and its key"}.Revocation(now)
	require.NoError(t, err)
	require.Equal(t, RevokedBy(c)[0], r.ID)
	require.True(t, strings.HasPrefix(r.ID, "sha256:"))
	require.Len(t, RevokedBy(c), 2, "nobody is locked out by the name of a node that a server's certificate has")
	require.Equal(t, c.NotAfter.UnixNano(), r.ExpireTime)
	require.False(t, r.Expired(now))
	require.True(t, r.Expired(c.NotAfter))

	_, err = RevokeRequest{Certificate: text}.Revocation(now.Add(2 * time.Hour))
	require.ErrorContains(t, err, "the certificate has ended")
	authority := *node
	authority.IsCA, authority.BasicConstraintsValid = true, true
	text, _ = certificate(t, &authority)
	_, err = RevokeRequest{Certificate: text}.Revocation(now)
	require.ErrorContains(t, err, `is the authority "3f2c"`)
	for bad, want := range map[string]string{
		"nonsense": "no certificate in PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "Certificate: x509",
		"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n": "no certificate in PEM",
	} {
		_, err = RevokeRequest{Certificate: bad}.Revocation(now)
		require.ErrorContains(t, err, want)
	}
	_, err = RevokeRequest{Certificate: text, ID: "node:a"}.Revocation(now)
	require.ErrorContains(t, err, "set one of them")
}
