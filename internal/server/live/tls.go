package live

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"sync/atomic"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// TLS is how a listener or a link is encrypted, with the newest certificates. A nil TLS is clear text.
type TLS struct {
	kind    string
	current atomic.Pointer[tls.Config]
}

// Open reads the certificates of the faces ("http") or of the links between agents ("rpc"); nil is clear text. Links are mutual:
// both sides show a certificate of the configured authority, which alone is trusted. Errors: Invalid.
func Open(cfg *config.TLS, kind string) (*TLS, error) {
	first, err := load(cfg, kind)
	if first == nil {
		return nil, err
	}
	t := &TLS{kind: kind}
	t.current.Store(first)
	return t, nil
}

// load reads what the configuration names; nil for clear text.
func load(cfg *config.TLS, kind string) (*tls.Config, error) {
	if cfg == nil || kind == "http" && !optional.Value(cfg.HTTP) || kind == "rpc" && !optional.Value(cfg.RPC) {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "tls.cert_file, tls.key_file: %w", err)
	}
	out := &tls.Config{Certificates: []tls.Certificate{pair}}
	if err := cfg.Restrict(out); err != nil {
		return nil, err
	}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "tls.ca_file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, drover.Errorf(drover.Invalid, "tls.ca_file: %s holds no certificate", cfg.CAFile)
		}
		out.RootCAs, out.ClientCAs = pool, pool
	}
	if kind == "rpc" || optional.Value(cfg.VerifyHTTPSClient) {
		out.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return out, nil
}

// Take reads the files again, which somebody renewed. On an error all stays as it was. Errors: Invalid.
func (t *TLS) Take(cfg *config.TLS) error {
	next, err := load(cfg, t.kind)
	if err == nil && next != nil {
		t.current.Store(next)
	}
	return err
}

// Config is the newest configuration; nil for clear text.
func (t *TLS) Config() *tls.Config {
	if t == nil {
		return nil
	}
	return t.current.Load()
}

// Source is Config as a function; nil for clear text.
func (t *TLS) Source() func() *tls.Config {
	if t == nil {
		return nil
	}
	return t.Config
}

// Listening is the configuration of a listener whose handshakes use the newest one, for the protocols; nil for clear text.
func (t *TLS) Listening(protocols ...string) *tls.Config {
	if t == nil {
		return nil
	}
	newest := func(*tls.ClientHelloInfo) (*tls.Config, error) {
		out := t.Config().Clone()
		out.NextProtos = protocols
		return out, nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetConfigForClient: newest}
}
