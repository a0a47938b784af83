package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
)

// With mutual TLS between agents a bought machine brings a token and the server's authority: it gets a certificate for
// them, and nobody else gets one with the same token. Who shows no certificate may do nothing else.
func TestMachinesJoinOverMutualTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificate(t)
	block := fmt.Sprintf("tls {\n  rpc = true\n  ca_file = %q\n  cert_file = %q\n  key_file = %q\n}\n", ca, cert, key)
	args := fleetAgent(t, "min = 1")
	extra := filepath.Join(t.TempDir(), "tls.hcl")
	require.NoError(t, os.WriteFile(extra, []byte(block), 0o600))
	args = append(args, "-config", extra)
	a := start(t, args...)
	ready := func() {
		eventually(t, "the machine", func() (bool, string) {
			list := a.machines()
			return len(list) == 1 && list[0].State == fleet.InstanceActive, fmt.Sprint(list)
		})
	}
	ready()
	c := a.nomad()
	_, _, err := c.Jobs().Register(fleetJob("hello", 1, "true"), nil)
	require.NoError(t, err)
	allocation(t, c, "hello", "complete")
	a.refusesTokenTwice(t, c)
	refusesTheUncertified(t, rpcOn.FindStringSubmatch(a.Output())[1], ca, "not")

	one := a.machines()[0].ID
	a.PullThePlug()
	a = start(t, args...)
	ready()
	_, _, err = a.nomad().Jobs().Register(fleetJob("again", 1, "true"), nil)
	require.NoError(t, err)
	allocation(t, a.nomad(), "again", "complete")
	require.Equal(t, one, a.machines()[0].ID, "its certificate is as good for a server that was started again")
}

func refusesTheUncertified(t *testing.T, server, ca, enrol string) {
	t.Helper()
	roots := x509.NewCertPool()
	text, err := os.ReadFile(ca)
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(text))
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer tr.CloseIdleConnections()
	hc := &http.Client{Transport: tr, Timeout: time.Minute}
	for path, want := range map[string]string{
		"Register": "a client certificate is needed", "Pull": "a client certificate is needed",
		"Enroll": enrol,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+server+"/drover.v1.Control/"+path,
			bytes.NewReader([]byte{0x80}))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/msgpack")
		answer, err := hc.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, "%s: %s", path, body)
		require.Contains(t, string(body), want)
	}
}
