package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
)

func TestMistakesOfAddressAndTokenNameTheirCauseFirst(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"unauthorized","message":"who are you"}`) // a proxy's words
	}))
	defer plain.Close()
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		http.Error(w, "Permission denied", http.StatusForbidden)
	}))
	defer forbids.Close()
	secure := func(conf *tls.Config) string {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[]") }))
		srv.Config.ErrorLog, srv.TLS = log.New(io.Discard, "", 0), conf
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL
	}
	open := secure(nil)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: httptestCertificate(t)}), 0o600))
	mutual := secure(&tls.Config{ClientAuth: tls.RequireAnyClientCert}) // a test
	_, port, err := net.SplitHostPort(strings.TrimPrefix(open, "https://"))
	require.NoError(t, err)
	for want, args := range map[string][]string{
		"certificate of the agent at " + open + " is of an authority that is not trusted here: -ca-cert or DROVER_CACERT": {"-address", open},
		"certificate of the agent at https://localhost:" + port + " is for other names: ": {
			"-address",
			"https://localhost:" + port, "-ca-cert", authority,
		},
		"the agent at http" + strings.TrimPrefix(open, "https") + " speaks TLS: give its address with https://": {
			"-address",
			"http" + strings.TrimPrefix(open, "https"),
		},
		"the agent at https" + strings.TrimPrefix(plain.URL, "http") + " does not speak TLS": {
			"-address",
			"https" + strings.TrimPrefix(plain.URL, "http"),
		},
		"the agent at " + mutual + " refuses our certificate, or asks for one: -client-cert and -client-key": {
			"-address", mutual,
			"-tls-skip-verify",
		},
		"give it with -token or DROVER_TOKEN":     {"-address", plain.URL},
		"no agent answers at http://127.0.0.1:1 ": {"-address", "http://127.0.0.1:1"},
	} {
		for _, command := range [][]string{{"env", "list"}, {"node", "status"}} { // by both clients
			var says bytes.Buffer
			app := &term.App{Out: io.Discard, Err: &says, Getenv: func(string) string { return "" }, Clock: clock.Wall{}}
			require.Equal(t, term.ExitFailure, Main(t.Context(), app, Parts{}, append(command, args...)), "it is no wrong usage")
			text := strings.TrimPrefix(says.String(), "Error: ")
			require.Contains(t, text, want)
			require.NotContains(t, strings.TrimPrefix(text, want), "Get ")
			if !strings.HasPrefix(want, "no agent") {
				require.NotContains(t, text, "drover agent -dev", "one is there")
			}
		}
	}
	var says bytes.Buffer
	app := &term.App{Out: io.Discard, Err: &says, Getenv: func(string) string { return "" }, Clock: clock.Wall{}}
	require.Equal(t, term.ExitFailure, Main(t.Context(), app, Parts{}, []string{"node", "status", "-address", forbids.URL, "-token", "wrong"}))
	require.Contains(t, says.String(), "-token or DROVER_TOKEN (NOMAD_TOKEN) gives another")
}

// httptestCertificate is the one that its servers show, which is its own authority.
func httptestCertificate(t *testing.T) []byte {
	t.Helper()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	return srv.Certificate().Raw
}

func TestAnAgentSaysWhereItServes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tls.hcl")
	require.NoError(t, os.WriteFile(file, []byte("tls {\n  http = true\n  cert_file = \"c\"\n  key_file = \"k\"\n}\n"), 0o600))
	for want, args := range map[string][]string{
		"http://there:1\n":  {"agent", "-dev"},
		"https://there:1\n": {"agent", "-dev", "-config", file},
	} {
		var says bytes.Buffer
		app := &term.App{Out: &says, Err: io.Discard, Getenv: os.Getenv, Clock: clock.Wall{}}
		parts := Parts{RunAgent: func(
			_ context.Context, _ *config.Agent, _ func() (*config.Agent, error), _ io.Writer, ready func(string),
		) error {
			ready("there:1")
			return nil
		}}
		Main(t.Context(), app, parts, args)
		require.Contains(t, says.String(), want)
	}
}
