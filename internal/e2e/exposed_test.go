package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent that others reach without a token and in clear text starts only where somebody says that this is meant, and
// says so itself; what it prints can be called.
func TestListeningBeyondLoopback(t *testing.T) {
	t.Parallel()
	refused := launch(t, append([]string{"-dev", "-bind", "0.0.0.0"}, config(t, "", "")...)...)
	require.Empty(t, refused.addr)
	for _, want := range []string{"bind_addr: the API on 0.0.0.0 lacks api_token and tls { http = true }", "insecure = true"} {
		require.Contains(t, refused.Output(), want)
	}
	a := start(t, append([]string{"-dev", "-bind", "0.0.0.0", "-insecure"}, config(t, "", "")...)...)
	require.True(t, strings.HasPrefix(a.addr, "127.0.0.1:"), a.addr)
	require.Contains(t, a.Output(), `level=WARN msg="INSECURE`)
	answer, err := http.Get("http://" + a.addr + "/v1/agent/health") // a test
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}
