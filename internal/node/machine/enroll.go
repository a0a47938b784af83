package machine

import (
	"bytes"
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/tlspin"
)

// askWithin bounds one attempt to get a certificate from one server.
const askWithin = 15 * time.Second

// Enrollment gets a node its certificate from a server, and keeps it in a folder. The node is told which authority servers are known
// by: a machine of the fleet by its configuration, any other by the pin of its join token.
type Enrollment struct {
	Folder    string
	Authority string // PEM; "" = the one with the pin
	Pin       string // see package tlspin
	Name      string // that the certificate of a server has which is known by the pin
	Servers   []string
	DeadAfter time.Duration // without an answer the machine is given up; 0 = never
	PowerOff  []string      // the command that ends a machine that is given up; empty = it stays
	Clock     clock.Clock
	Log       *slog.Logger
}

// AskFunc sends a certificate request, in PEM, to the server, over TLS with this configuration. Errors: Unauthorized, Invalid
// and Forbidden are final, if they are those of all servers.
type AskFunc func(ctx context.Context, address string, server *tls.Config, request []byte) (certificate []byte, err error)

// CAFile is where the authority is kept.
func (e *Enrollment) CAFile() string { return filepath.Join(e.Folder, "ca.pem") }

// CertFile is where the certificate and its key are kept, which are replaced as one.
func (e *Enrollment) CertFile() string { return filepath.Join(e.Folder, "cert.pem") }

// Prepare makes the folder, and reports whether a certificate is needed before anything else can be done: one that is kept serves
// to its end, and Keep renews it. Errors: Invalid.
func (e *Enrollment) Prepare() (needed bool, err error) {
	if err := os.MkdirAll(e.Folder, 0o700); err != nil {
		return false, drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if e.Authority != "" {
		if err := os.WriteFile(e.CAFile(), []byte(e.Authority), 0o600); err != nil {
			return false, drover.Errorf(drover.Invalid, "data_dir: %w", err)
		}
	}
	leaf, err := e.leaf()
	good := err == nil && tlspin.InTime(leaf, e.Clock.Now()) == nil && (e.Authority != "" || e.pinned(leaf))
	return !good, nil
}

// pinned reports whether the kept authority has the pin, and the certificate is of it.
func (e *Enrollment) pinned(leaf *x509.Certificate) bool {
	text, err := os.ReadFile(e.CAFile())
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && tlspin.Of(cert) == e.Pin && leaf.CheckSignatureFrom(cert) == nil
}

// leaf is the kept certificate. Errors: those of the file, also if its key is another one's.
func (e *Enrollment) leaf() (*x509.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(e.CertFile(), e.CertFile())
	return pair.Leaf, err
}

// Run asks until a server answers, and keeps the certificate. Errors: Unauthorized, Invalid, Forbidden; Unavailable when
// no server answered for DeadAfter; ctx's.
func (e *Enrollment) Run(ctx context.Context, ask AskFunc) error {
	began, said := e.Clock.Now(), ""
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := e.try(ctx, ask)
		code := drover.CodeOf(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(code):
			return e.giveUp(ctx, drover.Errorf(code, "asking the server for a certificate: %w", err))
		case e.DeadAfter > 0 && e.Clock.Now().Sub(began) >= e.DeadAfter:
			return e.giveUp(ctx, drover.Errorf(drover.Unavailable, "asking the server for a certificate: no answer for %s: %w", e.DeadAfter, err))
		}
		level := slog.LevelDebug
		if text := err.Error(); text != said {
			said, level = text, slog.LevelWarn
		}
		e.Log.Log(ctx, level, "asking the server for a certificate, trying again", "error", err, "in", wait)
		clock.Sleep(ctx, e.Clock, wait)
	}
}

// Keep renews the certificate at half of its time, until ctx ends, and again and again if it ended. taken is called after that.
func (e *Enrollment) Keep(ctx context.Context, ask AskFunc, taken func() error) error {
	for ctx.Err() == nil {
		wait := tlspin.Look
		if leaf, err := e.leaf(); err != nil || tlspin.Due(leaf, e.Clock.Now()) {
			if err = e.try(ctx, ask); err == nil {
				err = taken()
			}
			switch {
			case ctx.Err() != nil:
			case err == nil:
				e.Log.Info("renewed the node's certificate")
			case leaf == nil || tlspin.InTime(leaf, e.Clock.Now()) != nil:
				wait = time.Minute
				e.Log.Error("the node's certificate has ended, and is not renewed", "error", err)
			default:
				e.Log.Warn("renewing the node's certificate", "error", err, "it_ends", leaf.NotAfter)
			}
		}
		clock.Sleep(ctx, e.Clock, wait)
	}
	return nil
}

func final(code drover.Code) bool {
	return code == drover.Unauthorized || code == drover.Invalid || code == drover.Forbidden
}

// try asks each server once, with a new key, and keeps what the first of them gives. Errors: one that is not final, if there is such.
func (e *Enrollment) try(ctx context.Context, ask AskFunc) (err error) {
	key, request, err := newKey()
	if err != nil {
		return err
	}
	err = nil
	for _, address := range e.Servers {
		secure, seen, wrong := e.trust()
		if wrong != nil {
			return wrong
		}
		askCtx, cancel := e.Clock.WithTimeout(ctx, askWithin)
		cert, failed := ask(askCtx, address, secure, request)
		cancel()
		authority, refused := seen.get()
		switch {
		case failed == nil && refused == nil:
			return e.keep(authority, cert, key)
		case refused != nil:
			failed = refused
		case strings.Contains(failed.Error(), "first record does not look like a TLS handshake"):
			failed = drover.Errorf(drover.Unavailable, "it does not speak TLS there: the port is not its rpc port, or it has no certificate "+
				"(on loopback, with insecure = true, or an older version), and its join token has no @sha256:… at its end")
		}
		failed = drover.Errorf(drover.CodeOf(failed), "server %s: %w", address, failed)
		if err == nil || final(drover.CodeOf(err)) {
			err = failed
		}
	}
	return err
}

// seen is what a handshake told of the server: its authority in PEM, or why it is not believed.
type seen struct {
	mu        sync.Mutex // guards what follows
	authority string
	err       error
}

func (s *seen) get() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authority, s.err
}

// trust returns how a server is called, and what will be known of it then. Errors: Invalid.
func (e *Enrollment) trust() (*tls.Config, *seen, error) {
	out := &seen{authority: e.Authority}
	if e.Authority != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(e.Authority)) {
			return nil, nil, drover.Errorf(drover.Invalid, "client.machine.authority: holds no certificate in PEM")
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, out, nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: e.Name,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			authority, err := tlspin.Discover(state.PeerCertificates, e.Pin, e.Name, e.Clock.Now())
			out.mu.Lock()
			out.authority, out.err = authority, err
			out.mu.Unlock()
			return err
		},
	}, out, nil
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

// keep writes the authority first: after a crash in between, the certificate is not of it, and another one is asked for.
func (e *Enrollment) keep(authority string, cert, key []byte) error {
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return drover.Errorf(drover.Invalid, "the server's answer: %w", err)
	}
	if old, err := os.ReadFile(e.CAFile()); err != nil || !bytes.Equal(old, []byte(authority)) {
		if err := rotation.WriteFile(e.CAFile(), []byte(authority)); err != nil {
			return drover.Errorf(drover.Invalid, "data_dir: %w", err)
		}
	}
	if err := rotation.WriteFile(e.CertFile(), slices.Concat(cert, key)); err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	return nil
}
