package machine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// askWithin bounds one attempt to get a certificate.
const askWithin = 15 * time.Second

// Enrollment gets a machine its certificate from the server, which it keeps in a folder. Its configuration names the
// authority that the server is known by.
type Enrollment struct {
	Folder    string
	Authority string        // PEM
	DeadAfter time.Duration // without an answer the machine is given up; 0 = never
	PowerOff  []string      // the command that ends a machine that is given up; empty = it stays
	Clock     clock.Clock
	Log       *slog.Logger
}

// AskFunc sends a certificate request, in PEM, to the server, over TLS with this configuration. Errors: Unauthorized, Invalid
// and Forbidden are final.
type AskFunc func(ctx context.Context, server *tls.Config, request []byte) (certificate []byte, err error)

// CAFile is where the authority is kept.
func (e *Enrollment) CAFile() string { return filepath.Join(e.Folder, "ca.pem") }

// CertFile is where the certificate is kept.
func (e *Enrollment) CertFile() string { return filepath.Join(e.Folder, "cert.pem") }

// KeyFile is where the certificate's key is kept.
func (e *Enrollment) KeyFile() string { return filepath.Join(e.Folder, "key.pem") }

// Prepare makes the folder, and reports whether a certificate is needed: one that is kept serves until the last third of
// its time. Errors: Invalid.
func (e *Enrollment) Prepare() (needed bool, err error) {
	if err := os.MkdirAll(e.Folder, 0o700); err != nil {
		return false, drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if err := os.WriteFile(e.CAFile(), []byte(e.Authority), 0o600); err != nil {
		return false, drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	return !e.good(), nil
}

// good reports that the kept certificate can be used, and has not come into the last third of its time.
func (e *Enrollment) good() bool {
	pair, err := tls.LoadX509KeyPair(e.CertFile(), e.KeyFile())
	if err != nil {
		return false
	}
	left := pair.Leaf.NotAfter.Sub(e.Clock.Now())
	return left > pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/3
}

// Run asks until the server answers, and keeps the certificate. Errors: Unauthorized, Invalid, Forbidden; Unavailable when
// no server answered for DeadAfter; ctx's.
func (e *Enrollment) Run(ctx context.Context, ask AskFunc) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(e.Authority)) {
		return drover.Errorf(drover.Invalid, "client.machine.authority: holds no certificate in PEM")
	}
	key, request, err := newKey()
	if err != nil {
		return err
	}
	server, began := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, e.Clock.Now()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		askCtx, cancel := e.Clock.WithTimeout(ctx, askWithin)
		cert, err := ask(askCtx, server, request)
		cancel()
		code := drover.CodeOf(err)
		switch {
		case err == nil:
			return e.keep(key, cert)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case code == drover.Unauthorized || code == drover.Invalid || code == drover.Forbidden:
			return e.giveUp(ctx, drover.Errorf(code, "asking the server for a certificate: %w", err))
		case e.DeadAfter > 0 && e.Clock.Now().Sub(began) >= e.DeadAfter:
			return e.giveUp(ctx, drover.Errorf(drover.Unavailable, "asking the server for a certificate: no answer for %s: %w", e.DeadAfter, err))
		}
		e.Log.Info("asking the server for a certificate, trying again", "error", err, "in", wait)
		clock.Sleep(ctx, e.Clock, wait)
	}
}

// giveUp powers the machine off, which would cost on and never be of use, and returns why.
func (e *Enrollment) giveUp(ctx context.Context, why error) error {
	if len(e.PowerOff) == 0 {
		return why
	}
	e.Log.Error("giving up this machine", "error", why, "power_off", e.PowerOff)
	if out, err := exec.CommandContext(ctx, e.PowerOff[0], e.PowerOff[1:]...).CombinedOutput(); err != nil { // from the configuration
		e.Log.Error("powering off", "error", err, "output", string(out))
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
	key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), nil
}

// keep writes both. After a crash in between, the certificate is not of the key, and another one is asked for.
func (e *Enrollment) keep(key, cert []byte) error {
	for path, data := range map[string][]byte{e.KeyFile(): key, e.CertFile(): cert} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return drover.Errorf(drover.Invalid, "data_dir: %w", err)
		}
	}
	return nil
}
