package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
)

// enroll gets this machine a certificate from the server, if its configuration names the authority that the server is
// known by: the fleet's machines come with that and a token. What it gets is kept in the data folder. It waits for the
// server as long as the dead-man switch would. Errors: Unauthorized, Invalid; Unavailable when no server answered.
func (a *Agent) enroll(ctx context.Context) error {
	m := a.cfg.Client.Machine
	if !config.True(a.cfg.Client.Enabled) || a.control != nil || m == nil || m.Authority == "" || a.cfg.TLS != nil {
		return nil
	}
	dir := filepath.Join(a.dataDir, "client", "tls")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	kept := &config.TLS{
		RPC: new(true), CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
	}
	a.cfg.TLS = kept
	if err := os.WriteFile(kept.CAFile, []byte(m.Authority), 0o600); err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if good(kept, a.deps.Clock.Now()) {
		return nil
	}
	who, err := agent.ReadIdentity(agent.Config{DataDir: a.dataDir}, a.deps.IDs)
	if err != nil {
		return err
	}
	token, err := nodeToken(ctx, a.cfg.Client)
	if err != nil {
		return err
	}
	identity := link.Identity{NodeID: who.ID, Secret: who.Secret, JoinToken: token}
	return a.enrolled(ctx, m, identity, kept)
}

// good reports that the kept certificate can be used, and has not come into the last third of its time.
func good(t *config.TLS, now time.Time) bool {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return false
	}
	left := pair.Leaf.NotAfter.Sub(now)
	return left > pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/3
}

// enrolled asks until the server answers.
func (a *Agent) enrolled(ctx context.Context, m *config.Machine, who link.Identity, kept *config.TLS) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(m.Authority)) {
		return drover.Errorf(drover.Invalid, "client.machine.authority: holds no certificate in PEM")
	}
	key, csr, err := newKey()
	if err != nil {
		return err
	}
	hc := link.NewHTTPClient(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
	defer hc.CloseIdleConnections()
	patience := config.Duration(m.DeadAfter, 0)
	began := a.deps.Clock.Now()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		askCtx, cancel := a.deps.Clock.WithTimeout(ctx, 15*time.Second)
		cert, err := link.Enroll(askCtx, hc, "https://"+a.cfg.Client.ServerList()[0], who, csr)
		cancel()
		code := drover.CodeOf(err)
		switch {
		case err == nil:
			return keep(kept, key, cert)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case code == drover.Unauthorized || code == drover.Invalid || code == drover.Forbidden:
			return a.giveUp(ctx, m, drover.Errorf(code, "asking the server for a certificate: %w", err))
		case patience > 0 && a.deps.Clock.Now().Sub(began) >= patience:
			return a.giveUp(ctx, m, drover.Errorf(drover.Unavailable, "asking the server for a certificate: no answer for %s: %w", patience, err))
		}
		a.deps.Log.Info("asking the server for a certificate, trying again", "error", err, "in", wait)
		clock.Sleep(ctx, a.deps.Clock, wait)
	}
}

// giveUp powers the machine off, which would cost on and never be of use, and returns why.
func (a *Agent) giveUp(ctx context.Context, m *config.Machine, why error) error {
	if len(m.PowerOff) == 0 {
		return why
	}
	a.deps.Log.Error("giving up this machine", "error", why, "power_off", m.PowerOff)
	if out, err := exec.CommandContext(ctx, m.PowerOff[0], m.PowerOff[1:]...).CombinedOutput(); err != nil { //nolint:gosec // from the configuration
		a.deps.Log.Error("powering off", "error", err, "says", string(out))
	}
	return why
}

// newKey makes a key, and a request for a certificate for it, in PEM.
func newKey() (key, csr []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, drover.Errorf(drover.Internal, "making a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, drover.Errorf(drover.Internal, "making a key: %w", err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, nil, drover.Errorf(drover.Internal, "making a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), nil
}

// keep writes both; a certificate that is not of the key, after a crash in between, is asked for again.
func keep(t *config.TLS, key, cert []byte) error {
	for path, data := range map[string][]byte{t.KeyFile: key, t.CertFile: cert} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return drover.Errorf(drover.Invalid, "data_dir: %w", err)
		}
	}
	return nil
}
