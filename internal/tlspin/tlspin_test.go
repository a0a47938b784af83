package tlspin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

var hash = strings.Repeat("0a", 32)

func TestATokenHasASecretAndAPin(t *testing.T) {
	t.Parallel()
	for token, want := range map[string][2]string{
		"":                           {"", ""},
		"secret":                     {"secret", ""},
		"a@b":                        {"a@b", ""},
		"secret@sha256:" + hash:      {"secret", "sha256:" + hash},
		"a@sha256:b@sha256:" + hash:  {"a@sha256:b", "sha256:" + hash},
		"@sha256:" + hash:            {"", "sha256:" + hash}, // of a node that comes with an introduction alone
		"s@sha256:0A" + hash[2:]:     {"s", "sha256:" + hash},
		Join("s", "sha256:"+hash):    {"s", "sha256:" + hash},
		Join("without a server", ""): {"without a server", ""},
	} {
		secret, pin, err := Split(token)
		require.NoError(t, err, token)
		require.Equal(t, want, [2]string{secret, pin}, token)
	}
	for _, torn := range []string{"s@sha256:", "s@sha256:" + hash[:63], "s@sha256:" + hash + "00", "s@sha256:" + hash[:62] + "xx"} {
		_, _, err := Split(torn)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), torn)
		require.ErrorContains(t, err, "copy it whole")
		require.NotContains(t, err.Error(), hash[:60])
	}
}

// made is a certificate and its key.
type made struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// certify makes a certificate for a day around noon; by nil it signs itself and is an authority.
func certify(t *testing.T, by *made, use x509.ExtKeyUsage, names ...string) *made {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: noon.Add(-12 * time.Hour), NotAfter: noon.Add(12 * time.Hour), DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	parent, signer := template, key
	if by == nil {
		template.IsCA, template.BasicConstraintsValid, template.ExtKeyUsage = true, true, nil
	} else {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &made{cert, key}
}

// Only a server of the authority that the pin names is believed, and only in time.
func TestDiscover(t *testing.T) {
	t.Parallel()
	const name = "server.global.drover"
	a, b := certify(t, nil, 0), certify(t, nil, 0)
	server := certify(t, a, x509.ExtKeyUsageServerAuth, "localhost", name)
	pin := Of(a.cert)
	text, err := Discover([]*x509.Certificate{server.cert, a.cert}, pin, name, noon)
	require.NoError(t, err)
	block, _ := pem.Decode([]byte(text))
	require.Equal(t, a.cert.Raw, block.Bytes)

	signed := func(by *made, use x509.ExtKeyUsage, name string) *x509.Certificate {
		return certify(t, by, use, name).cert
	}
	const servers, clients = x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	type chain = []*x509.Certificate
	for why, c := range map[string]struct {
		shown chain
		want  string
	}{
		"an impostor":                       {chain{signed(b, servers, name), b.cert}, "the server's authority is " + Of(b.cert)},
		"one that shows somebody else's":    {chain{signed(b, servers, name), a.cert}, "is not one of its authority"},
		"a node":                            {chain{signed(a, clients, name), a.cert}, "is not one of its authority"},
		"a server of another region":        {chain{signed(a, servers, "server.west.drover"), a.cert}, "as region is here"},
		"an older server, which shows none": {chain{server.cert}, "the server's authority is none that it shows"},
		"nobody":                            {nil, "none that it shows"},
	} {
		_, err := Discover(c.shown, pin, name, noon)
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), "%s: %v", why, err)
		require.ErrorContains(t, err, c.want, why)
	}
	for _, at := range []time.Time{noon.Add(-24 * time.Hour), noon.Add(24 * time.Hour)} {
		_, err := Discover([]*x509.Certificate{server.cert, a.cert}, pin, name, at)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it may pass: %v", err)
		require.ErrorContains(t, err, "the certificate is good from 2026-11-28T00:00:00Z to 2026-11-29T00:00:00Z, and this machine's clock says "+
			at.Format(time.RFC3339)+": set the clock that is wrong")
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	c := certify(t, nil, 0).cert
	for at, want := range map[time.Duration]bool{
		-13 * time.Hour: true, -12 * time.Hour: false, -time.Second: false, 0: true, 13 * time.Hour: true,
	} {
		require.Equal(t, want, Due(c, noon.Add(at)), at)
	}
}
