package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestACertificateIsOfOneMachine(t *testing.T) {
	t.Parallel()
	a, err := newAuthority([]byte("key"))
	require.NoError(t, err)
	again, err := newAuthority([]byte("key"))
	require.NoError(t, err)
	require.True(t, a.cert.Equal(again.cert), "every server has the same authority")
	other, err := newAuthority([]byte("another"))
	require.NoError(t, err)
	require.False(t, a.cert.Equal(other.cert))

	_, err = a.certify([]byte("nonsense"), "i1", time.Now())
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, csr, err := newKey()
	require.NoError(t, err)
	text, err := a.certify(csr, "i1", time.Now())
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	require.Error(t, err, "it can't pose as a server")

	g := &gate{
		authority: func() (*authority, error) { return a, nil },
		machine: func(token string) (string, error) {
			if token == "gone" {
				return "", drover.Errorf(drover.Unauthorized, "gone")
			}
			return token, nil
		},
		next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	}
	for _, x := range []struct {
		state *tls.ConnectionState
		token string
		want  int
	}{
		{nil, "i1", 401},
		{&tls.ConnectionState{}, "i1", 401},
		{&tls.ConnectionState{VerifiedChains: chains}, "i1", 418},
		{&tls.ConnectionState{VerifiedChains: chains}, "i2", 401},
		{&tls.ConnectionState{VerifiedChains: chains}, "gone", 401},
		{&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{other.cert}}}, "i2", 418}, // of the configured authority
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/drover.v1.Control/Pull", nil)
		r.TLS = x.state
		r.Header.Set("Drover-Join-Token", x.token)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		require.Equal(t, x.want, w.Code, "%s: %s", x.token, w.Body)
	}
}
