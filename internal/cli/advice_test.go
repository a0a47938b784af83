package cli

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drover/internal/config"
)

func TestMistakesOfAddressAndTokenNameTheirFix(t *testing.T) {
	t.Parallel()
	guarded := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"unauthorized","message":"a token is needed"}`)
	}))
	guarded.Config.ErrorLog = log.New(io.Discard, "", 0)
	guarded.StartTLS()
	defer guarded.Close()
	for want, args := range map[string][]string{
		"-ca-cert or DROVER_CACERT":    {"-address", guarded.URL},
		"-token or DROVER_TOKEN":       {"-address", guarded.URL, "-tls-skip-verify"},
		"the address begins with http": {"-address", "http" + strings.TrimPrefix(guarded.URL, "https")},
	} {
		var says bytes.Buffer
		a := &App{Out: io.Discard, Err: &says, Getenv: func(string) string { return "" }}
		require.NotZero(t, a.Main(t.Context(), append([]string{"env", "list"}, args...)))
		require.Contains(t, says.String(), want)
	}
}

func TestAnAgentSaysWhereItServes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tls.hcl")
	require.NoError(t, os.WriteFile(file, []byte("tls {\n  http = true\n  cert_file = \"c\"\n  key_file = \"k\"\n}\n"), 0o600))
	for want, args := range map[string][]string{"http://there:1\n": {"agent", "-dev"}, "https://there:1\n": {"agent", "-dev", "-config", file}} {
		var says bytes.Buffer
		a := &App{Out: &says, Err: io.Discard, Getenv: os.Getenv, RunAgent: func(_ context.Context, _ *config.Agent, _ io.Writer, ready func(string)) error {
			ready("there:1")
			return nil
		}}
		a.Main(t.Context(), args)
		require.Contains(t, says.String(), want)
	}
}
