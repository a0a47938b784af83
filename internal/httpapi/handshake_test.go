package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// served serves behind Encrypt, and returns the address and a client that trusts it.
func served(t *testing.T, cfg Handshakes) (address string, client *http.Client) {
	t.Helper()
	plain := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	t.Cleanup(plain.Close)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg.TLS = &tls.Config{Certificates: plain.TLS.Certificates, NextProtos: Protocols, MinVersion: tls.VersionTLS12}
	cfg.Clock, cfg.Log = clock.Wall{}, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := &Server{Handler: plain.Config.Handler, Logger: cfg.Log, Clock: cfg.Clock}
	go func() { done <- s.Serve(ctx, Encrypt(ln, cfg)) }() // ends with the test
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	tr := plain.Client().Transport.(*http.Transport).Clone()
	tr.ForceAttemptHTTP2 = true
	t.Cleanup(tr.CloseIdleConnections)
	return ln.Addr().String(), &http.Client{Transport: tr}
}

func dialed(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func proto(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, nil)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// Who dials and says nothing, or a byte of a handshake, is hung up on in time, and holds up nobody.
func TestSlowHandshakesEnd(t *testing.T) {
	t.Parallel()
	address, client := served(t, Handshakes{Within: 300 * time.Millisecond})
	var silent []net.Conn
	for range 20 {
		c := dialed(t, address)
		_, err := c.Write([]byte{0x16})
		require.NoError(t, err)
		silent = append(silent, c)
	}
	require.Equal(t, "HTTP/2.0", proto(t, client, address))
	for _, c := range silent {
		_, err := io.ReadAll(c)
		require.NoError(t, err, "it was closed")
	}
}

func TestHandshakesOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	address, client := served(t, Handshakes{Within: time.Minute, Most: 2})
	first, second := dialed(t, address), dialed(t, address)
	third := dialed(t, address)
	_, err := third.Read(make([]byte, 1))
	require.Error(t, err, "it was closed at once: its address has two under way")
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "what was closed is counted no more")
}

func TestWhoSpeaksClearTextIsTold(t *testing.T) {
	t.Parallel()
	address, _ := served(t, Handshakes{Within: time.Minute})
	c := dialed(t, address)
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.0 400 Bad Request\r\n", line)
}

// A port of links closes what is beyond the bound, and serves others.
func TestLinksOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	require.Equal(t, ln, LimitLinks(ln, 0))
	limited := LimitLinks(ln, 1)
	address := ln.Addr().String()
	first := dialed(t, address)
	kept, err := limited.Accept()
	require.NoError(t, err)
	require.Equal(t, first.LocalAddr().String(), kept.RemoteAddr().String())
	next := make(chan net.Conn, 1)
	go func() { c, _ := limited.Accept(); next <- c }() // ends with the connection below
	refused := dialed(t, address)
	_, err = refused.Read(make([]byte, 1))
	require.Error(t, err)
	other, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer other.Close()
	c := <-next
	require.Equal(t, other.LocalAddr().String(), c.RemoteAddr().String(), "another address is served")
	c.Close()
	kept.Close()
}
