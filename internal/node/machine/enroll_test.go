package machine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// authority signs requests for a year.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(1e6 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func (a *authority) sign(t *testing.T, request []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "i1"}, NotBefore: time.Now(), NotAfter: time.Now().Add(300 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, csr.PublicKey, a.key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newEnrollment(t *testing.T, a *authority) *Enrollment {
	t.Helper()
	return &Enrollment{
		Folder: filepath.Join(t.TempDir(), "tls"), Authority: a.pem, DeadAfter: 10 * time.Minute,
		PowerOff: []string{"touch", filepath.Join(t.TempDir(), "off")}, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}
}

func TestACertificateIsKeptUntilItsLastThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		e := newEnrollment(t, a)
		needed, err := e.Prepare()
		require.NoError(t, err)
		require.True(t, needed)
		calls := 0
		require.NoError(t, e.Run(t.Context(), func(_ context.Context, server *tls.Config, request []byte) ([]byte, error) {
			require.NotNil(t, server.RootCAs, "no other server is asked")
			if calls++; calls < 4 {
				return nil, drover.Errorf(drover.Unavailable, "not up yet")
			}
			return a.sign(t, request), nil
		}))
		require.Equal(t, 4, calls)
		for _, file := range []string{e.CAFile(), e.CertFile(), e.KeyFile()} {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		}
		time.Sleep(199 * 24 * time.Hour)
		needed, err = e.Prepare()
		require.NoError(t, err)
		require.False(t, needed)
		time.Sleep(2 * 24 * time.Hour)
		needed, err = e.Prepare()
		require.NoError(t, err)
		require.True(t, needed, "in the last third of its time")

		other, _, err := newKey()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(e.KeyFile(), other, 0o600))
		needed, err = e.Prepare()
		require.NoError(t, err)
		require.True(t, needed, "the key is another certificate's")
	})
}

func TestAMachineThatIsRefusedIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, code := range []drover.Code{drover.Unauthorized, drover.Invalid, drover.Forbidden} {
		e := newEnrollment(t, newAuthority(t))
		_, err := e.Prepare()
		require.NoError(t, err)
		err = e.Run(t.Context(), func(context.Context, *tls.Config, []byte) ([]byte, error) { return nil, drover.Errorf(code, "no") })
		require.Equal(t, code, drover.CodeOf(err))
		require.ErrorContains(t, err, "asking the server for a certificate: ")
		require.FileExists(t, e.PowerOff[1], "it would cost on and never be of use")
	}
}

func TestAMachineWithoutAServerIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnrollment(t, newAuthority(t))
		e.PowerOff = nil
		_, err := e.Prepare()
		require.NoError(t, err)
		began := time.Now()
		down := func(ctx context.Context, _ *tls.Config, _ []byte) ([]byte, error) {
			<-ctx.Done() // it answers nothing
			return nil, drover.Errorf(drover.Unavailable, "silence")
		}
		err = e.Run(t.Context(), down)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.ErrorContains(t, err, "no answer for 10m0s")
		require.InDelta(t, 10, time.Since(began).Minutes(), 0.5)

		e.DeadAfter = 0
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		require.ErrorIs(t, e.Run(ctx, down), context.DeadlineExceeded, "it waits forever")
		e.Authority = "nonsense"
		require.Equal(t, drover.Invalid, drover.CodeOf(e.Run(t.Context(), down)))
	})
}
