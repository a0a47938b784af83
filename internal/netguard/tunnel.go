package netguard

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/drover-project/drover"
)

// Tunnel connects to host:port for a program that speaks a protocol of its own. The way is the one that Client takes: a host
// that is an address is judged first, and a name's address when it is dialled. Where the environment names a proxy for
// https, the proxy is asked to connect instead. Errors: Forbidden, those of dialling.
func (g *Guard) Tunnel(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "%s %q: %w", g.What, address, err)
	}
	if err := g.CheckHost(host); err != nil {
		return nil, err
	}
	proxy, err := proxyFor(address)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return g.dial(ctx, "tcp", address)
	}
	return throughProxy(ctx, proxy, address)
}

// proxyFor is the proxy that the environment names for https to the address; nil: none. SOCKS is not spoken here.
func proxyFor(address string) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	if err != nil || proxy == nil {
		return nil, err
	}
	if proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil, drover.Errorf(drover.Invalid, "the proxy of the environment is of kind %q: want http or https", proxy.Scheme)
	}
	return proxy, nil
}

func throughProxy(ctx context.Context, proxy *url.URL, address string) (net.Conn, error) {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	var c net.Conn
	var err error
	at := net.JoinHostPort(proxy.Hostname(), port)
	if proxy.Scheme == "https" {
		c, err = (&tls.Dialer{}).DialContext(ctx, "tcp", at)
	} else {
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp", at)
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if proxy.User != nil {
		secret, _ := proxy.User.Password()
		login := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + secret))
		r.Header.Set("Proxy-Authorization", "Basic "+login)
	}
	if err := r.Write(c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("asking the proxy: %w", err)
	}
	from := bufio.NewReader(c)
	res, err := http.ReadResponse(from, r)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answered %s", res.Status)
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("asking the proxy: %w", err)
	}
	return &begun{c, from}, nil
}

// begun is a connection of which a reader may have read more than it gave.
type begun struct {
	net.Conn
	from *bufio.Reader
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) { return b.from.Read(p) }
