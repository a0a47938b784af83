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
	"github.com/drover-project/drover/internal/tlspin"
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
		PowerOff: []string{"touch", filepath.Join(t.TempDir(), "off")}, Servers: []string{"s1:1"},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}
}

// A certificate serves to its end. It is renewed at half of its time while the node runs, again and again if that fails, and taken up.
func TestACertificateIsRenewedAtHalfOfItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		e := newEnrollment(t, a)
		prepare := func() bool {
			needed, err := e.Prepare()
			require.NoError(t, err)
			return needed
		}
		require.True(t, prepare())
		calls, fail := 0, drover.Errorf(drover.Unavailable, "not up yet")
		ask := func(_ context.Context, server string, secure *tls.Config, request []byte) ([]byte, error) {
			require.Equal(t, "s1:1", server)
			require.NotNil(t, secure.RootCAs, "no other server is asked")
			if calls++; calls < 4 {
				return nil, fail
			}
			return a.sign(t, request), nil
		}
		require.NoError(t, e.Run(t.Context(), ask))
		require.Equal(t, 4, calls)
		for _, file := range []string{e.CAFile(), e.CertFile()} {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		}
		first, err := e.leaf()
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan time.Time, 1)
		go func() { // ends with ctx
			_ = e.Keep(ctx, ask, func() error { taken <- time.Now(); return nil })
		}()
		calls = 0
		at := <-taken
		require.InDelta(t, 152, at.Sub(first.NotBefore).Hours()/24, 2.2, "half of 300 days, and 3 hours in which nobody answered")
		require.Equal(t, 4, calls)
		second, err := e.leaf()
		require.NoError(t, err)
		require.True(t, second.NotBefore.After(first.NotBefore))
		cancel()
		synctest.Wait()

		time.Sleep(299 * 24 * time.Hour)
		require.False(t, prepare(), "it serves to its end")
		time.Sleep(2 * 24 * time.Hour)
		require.True(t, prepare())

		require.NoError(t, e.Run(t.Context(), ask))
		require.False(t, prepare())
		_, key, err := newKey()
		require.NoError(t, err)
		text, err := os.ReadFile(e.CertFile())
		require.NoError(t, err)
		block, _ := pem.Decode(text)
		require.NoError(t, os.WriteFile(e.CertFile(), append(pem.EncodeToMemory(block), key...), 0o600))
		require.True(t, prepare(), "the key is another certificate's")
	})
}

// A node that was told a pin believes the server that shows this authority alone, keeps it, and asks anew when it is told another one.
func TestANodeBelievesTheAuthorityThatItsTokenNames(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	e := newEnrollment(t, a)
	e.Authority, e.Pin, e.Name, e.Servers, e.PowerOff = "", tlspin.Of(a.cert), "server.global.drover", []string{"s1:1", "s2:1"}, nil
	server := func(by *authority) [][]byte {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			DNSNames: []string{"server.global.drover"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, by.cert, by.key.Public(), by.key)
		require.NoError(t, err)
		return [][]byte{der, by.cert.Raw}
	}
	ask := func(shown map[string][][]byte) AskFunc {
		return func(_ context.Context, address string, secure *tls.Config, request []byte) ([]byte, error) {
			var chain []*x509.Certificate
			for _, der := range shown[address] {
				c, err := x509.ParseCertificate(der)
				require.NoError(t, err)
				chain = append(chain, c)
			}
			if err := secure.VerifyConnection(tls.ConnectionState{PeerCertificates: chain}); err != nil {
				return nil, drover.Errorf(drover.Unavailable, "link: %s", err.Error()) // what is left of it
			}
			return a.sign(t, request), nil
		}
	}
	needed, err := e.Prepare()
	require.NoError(t, err)
	require.True(t, needed)
	err = e.Run(t.Context(), ask(map[string][][]byte{"s1:1": server(other), "s2:1": server(other)}))
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "the server's authority is "+tlspin.Of(other.cert)+", and the join token names "+e.Pin)
	err = e.Run(t.Context(), ask(map[string][][]byte{"s1:1": server(other), "s2:1": server(a)}))
	require.NoError(t, err, "one impostor keeps nobody out")
	needed, err = e.Prepare()
	require.NoError(t, err)
	require.False(t, needed)
	text, err := os.ReadFile(e.CAFile())
	require.NoError(t, err)
	require.Equal(t, a.pem, string(text))

	e.Pin = tlspin.Of(other.cert)
	needed, err = e.Prepare()
	require.NoError(t, err)
	require.True(t, needed, "it was told another one")
	e.Pin = tlspin.Of(a.cert)
	require.NoError(t, os.WriteFile(e.CAFile(), []byte(other.pem), 0o600))
	needed, err = e.Prepare()
	require.NoError(t, err)
	require.True(t, needed)
}

func TestAMachineThatIsRefusedIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, code := range []drover.Code{drover.Unauthorized, drover.Invalid, drover.Forbidden} {
		e := newEnrollment(t, newAuthority(t))
		_, err := e.Prepare()
		require.NoError(t, err)
		err = e.Run(t.Context(), func(context.Context, string, *tls.Config, []byte) ([]byte, error) {
			return nil, drover.Errorf(code, "no")
		})
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
		down := func(ctx context.Context, _ string, _ *tls.Config, _ []byte) ([]byte, error) {
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
