package checks

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"unicode/utf8"
)

// maxOutput is what of an answer is kept, in bytes.
const maxOutput = 3 << 10

// Network probes over the machine's network.
type Network struct{ dialer net.Dialer }

// Probe carries out a check of type http, grpc or tcp. An answer of 200 to 299 is well, a server of gRPC that says that it serves,
// and a connection that can be made.
func (n *Network) Probe(ctx context.Context, c *Check) (code int, output string, ok bool) {
	switch c.Type {
	case "http":
		return n.http(ctx, c)
	case "grpc":
		return n.grpc(ctx, c)
	}
	conn, err := n.dialer.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return 0, "nomad: " + err.Error(), false
	}
	_ = conn.Close()
	return 0, "nomad: tcp ok", true
}

// http asks over a connection of its own: one that is kept would go on to a task that does not listen any more.
func (n *Network) http(ctx context.Context, c *Check) (code int, output string, ok bool) {
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return 0, "nomad: " + err.Error(), false
	}
	for name, values := range c.Header {
		for _, v := range values {
			if strings.EqualFold(name, "Host") {
				r.Host = v
				continue
			}
			r.Header.Add(name, v)
		}
	}
	t := &http.Transport{
		DialContext: n.dialer.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{ServerName: c.TLSServerName, InsecureSkipVerify: c.TLSSkipVerify},
	}
	defer t.CloseIdleConnections()
	answer, err := t.RoundTrip(r) // redirects are answers: they are not followed
	if err != nil {
		return 0, "nomad: " + err.Error(), false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxOutput))
	if err != nil {
		return answer.StatusCode, "nomad: " + err.Error(), false
	}
	if answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		return answer.StatusCode, "nomad: http ok", true
	}
	text := strings.ToValidUTF8(string(body), string(utf8.RuneError))
	return answer.StatusCode, fmt.Sprintf("nomad: http status %d: %s", answer.StatusCode, text), false
}
