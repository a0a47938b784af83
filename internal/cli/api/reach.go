package api

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
)

// startOne is what can be done when no agent answers.
const startOne = "start one with 'drover agent -dev', or set -address or DROVER_ADDR"

// plainToTLS is how Go's server begins its answer to plain HTTP on a port for TLS. It comes with status 400.
const plainToTLS = "Client sent an HTTP request to an HTTPS server."

// reaching wraps a transport: it names the true cause first when an agent cannot be asked, and what can be done about
// it. Both clients, of Nomad's API and of our own, use it.
type reaching struct{ http.RoundTripper }

// RoundTrip serves http.RoundTripper. Errors: Unavailable; the context's own.
func (h reaching) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := h.RoundTripper.RoundTrip(r)
	if err != nil {
		if r.Context().Err() == nil {
			err = unreached(r.URL, err)
		}
		return res, err
	}
	if r.URL.Scheme == "http" && res.StatusCode == http.StatusBadRequest && startsWith(res, plainToTLS) {
		_ = res.Body.Close() // the rest of it says nothing more
		return nil, drover.Errorf(drover.Unavailable, "the agent at %s speaks TLS: give its address with https:// (-address or DROVER_ADDR)",
			base(r.URL))
	}
	return res, nil
}

// startsWith reports whether the answer's body begins with text, and leaves the body as if nobody had read it.
func startsWith(res *http.Response, text string) bool {
	head := make([]byte, len(text))
	n, _ := io.ReadFull(res.Body, head) // what cannot be read is another text
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head[:n]), res.Body), res.Body}
	return string(head[:n]) == text
}

// base returns the address that people gave: scheme, host and port.
func base(u *url.URL) string { return u.Scheme + "://" + u.Host }

// unreached returns an Unavailable error that says why the agent at u was not reached. Go's own texts name the
// symptom only. The order matters: a wrong authority is also a certificate that could not be verified.
func unreached(u *url.URL, err error) error {
	at := base(u)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherName := errors.AsType[x509.HostnameError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, clear := errors.AsType[tls.RecordHeaderError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case unknown:
		return drover.Errorf(drover.Unavailable, "the certificate of the agent at %s is of an authority that is not trusted here: -ca-cert or "+
			"DROVER_CACERT names the file of its CA (%w)", at, err)
	case otherName:
		return drover.Errorf(drover.Unavailable, "the certificate of the agent at %s is for other names: -address or DROVER_ADDR gives one of "+
			"them, or -tls-server-name names the one to expect (%w)", at, err)
	case certificate:
		return drover.Errorf(drover.Unavailable, "the certificate of the agent at %s is not good (%w)", at, err)
	case clear, strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return drover.Errorf(drover.Unavailable, "the agent at %s does not speak TLS: give its address with http:// (-address or DROVER_ADDR)",
			at)
	case strings.Contains(err.Error(), "remote error: tls: "):
		return drover.Errorf(drover.Unavailable, "the agent at %s refuses our certificate, or asks for one: -client-cert and -client-key, or "+
			"DROVER_CLIENT_CERT and DROVER_CLIENT_KEY, name it (%w)", at, err)
	case isOp && op.Op == "dial":
		return drover.Errorf(drover.Unavailable, "no agent answers at %s (%w): "+startOne, at, err)
	}
	return drover.Errorf(drover.Unavailable, "the agent at %s gives no answer (%w)", at, err)
}
