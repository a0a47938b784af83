package intake

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
)

// TestRevocations are stored, taken back, and forgotten a day after the certificate ended; the leader's own certificate cannot be revoked.
func TestRevocations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bundleIn(t)
		own := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "s"}, DNSNames: []string{"server.global.drover"}}
		b.deps.OwnCertificate = func() *x509.Certificate { return own }
		_, _, err := b.RevokeCertificate(t.Context(), cluster.RevokeRequest{ID: "serial:0x7"})
		code(t, drover.Conflict, err, "serial:7 is the certificate of the server that leads")
		_, _, err = b.RevokeCertificate(t.Context(), cluster.RevokeRequest{ID: "serial"})
		code(t, drover.Invalid, err, "ID: ")

		end := time.Now().Add(time.Hour)
		r, o, err := b.RevokeCertificate(t.Context(), cluster.RevokeRequest{ID: "serial:8", Reason: "lost", ExpireTime: end.UnixNano()})
		require.NoError(t, err)
		require.Equal(t, []any{"serial:8", "lost", o.Index}, []any{r.ID, r.Reason, r.CreateIndex})
		_, _, err = b.RevokeCertificate(t.Context(), cluster.RevokeRequest{ID: "serial:9"})
		require.NoError(t, err)

		_, err = b.ReinstateCertificate(t.Context(), "serial:10")
		code(t, drover.NotFound, err, `revocation not found: "serial:10"`)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // ends with ctx
			b.ForgetRevocations(ctx, slog.New(slog.DiscardHandler))
			close(done)
		}()
		kept := func() bool { return b.store.Snapshot().Revocation("serial:8") != nil }
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.True(t, kept(), "clocks differ")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.False(t, kept())
		require.NotNil(t, b.store.Snapshot().Revocation("serial:9"))
		stop()
		<-done
		_, err = b.ReinstateCertificate(t.Context(), "serial:9")
		require.NoError(t, err)
		require.Nil(t, b.store.Snapshot().Revocation("serial:9"))
	})
}
