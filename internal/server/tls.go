package server

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// tlsFor returns the TLS configuration of the faces ("http") or of the links between agents ("rpc"); nil for clear
// text. Links are mutual: both sides show a certificate of the configured authority, which alone is trusted.
func tlsFor(cfg *config.TLS, kind string) (*tls.Config, error) {
	if cfg == nil || kind == "http" && !optional.Value(cfg.HTTP) || kind == "rpc" && !optional.Value(cfg.RPC) {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "tls.cert_file, tls.key_file: %w", err)
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
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
