package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// timing is when a connection counts as broken.
type timing struct {
	idle, ping time.Duration // after so long without a byte a ping is sent, which is answered within so long
	dial       time.Duration // to connect
	unused     time.Duration // a connection without calls is closed after that; 0 = never
}

// lasting bears a peer that does not answer for a while, brisk does not.
var (
	lasting = timing{idle: 15 * time.Second, ping: 10 * time.Second, dial: 10 * time.Second}
	brisk   = timing{dial: 1500 * time.Millisecond}
)

// HTTP2 is for a server whose nodes dial: it closes the connection of a node that is gone, with its tunnel. Nodes ping when nothing
// else is to be said, so that the server itself has to ask only those that have fallen silent. Frames are short: for each connection
// both sides keep room for the longest.
func HTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: lasting.idle + lasting.ping, PingTimeout: lasting.ping, MaxReadFrameSize: 16 << 10}
}

// NewHTTPClient returns a client that speaks HTTP/2, in clear text when tlsConfig is nil.
func NewHTTPClient(tlsConfig *tls.Config) *http.Client {
	if tlsConfig == nil {
		return newHTTPClient(nil, nil, lasting)
	}
	return newHTTPClient(func() *tls.Config { return tlsConfig }, nil, lasting)
}

// newHTTPClient returns a client whose every new connection is encrypted as newest says then, in clear text when that is nil. It
// takes, beside what that does, servers whose certificate has one of the names.
func newHTTPClient(newest func() *tls.Config, names []string, at timing) *http.Client {
	t := &http2.Transport{
		ReadIdleTimeout: at.idle, PingTimeout: at.ping, IdleConnTimeout: at.unused, AllowHTTP: newest == nil,
	}
	t.DialTLSContext = func(ctx context.Context, network, addr string, asked *tls.Config) (net.Conn, error) {
		d := net.Dialer{Timeout: at.dial}
		if newest == nil {
			return d.DialContext(ctx, network, addr)
		}
		cfg := newest().Clone()
		cfg.ServerName, cfg.NextProtos = cmp.Or(cfg.ServerName, asked.ServerName), asked.NextProtos
		return (&tls.Dialer{NetDialer: &d, Config: named(cfg, names)}).DialContext(ctx, network, addr)
	}
	return &http.Client{Transport: t}
}

// named has the peer's certificate verified as usual, but for its name, which may also be one of the names.
func named(cfg *tls.Config, names []string) *tls.Config {
	if len(names) == 0 || cfg.InsecureSkipVerify {
		return cfg
	}
	host := cfg.ServerName
	cfg = cfg.Clone()
	cfg.InsecureSkipVerify = true // VerifyConnection does it
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		leaf, rest := state.PeerCertificates[0], x509.NewCertPool() // a server shows one
		for _, c := range state.PeerCertificates[1:] {
			rest.AddCert(c)
		}
		opts := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: rest, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if cfg.Time != nil {
			opts.CurrentTime = cfg.Time()
		}
		if _, err := leaf.Verify(opts); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(leaf.DNSNames, name) }) {
			return nil
		}
		return leaf.VerifyHostname(host)
	}
	return cfg
}
