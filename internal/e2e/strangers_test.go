package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/link"
)

// TestAStrangerThatKnocksWithoutEnd: who asks for certificates without end, with tokens that are nobody's, is sent away after a hundred,
// with the time when to come back, whoever it says that it is. A node with the token gets its certificate from the same address meanwhile.
func TestAStrangerThatKnocksWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "server"), "tls {\n  auto = true\n  http = true\n}\n")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	hc := link.NewHTTPClient(&tls.Config{InsecureSkipVerify: true}) // as a stranger
	t.Cleanup(hc.CloseIdleConnections)
	reasons := map[string]int{}
	for i := range 200 {
		who := link.Applicant{NodeID: fmt.Sprint("n", i), Secret: "s"}
		who.Tokens.Join = fmt.Sprint("guess", i)
		_, err := link.Enroll(t.Context(), hc, "https://"+m[1], who, []byte("csr"))
		require.Error(t, err)
		reason, _, _ := strings.Cut(err.Error(), ":")
		reasons[reason]++
	}
	require.GreaterOrEqual(t, reasons["wrong join token"], 100, reasons)
	require.GreaterOrEqual(t, reasons["link"], 50, reasons)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+m[1]+link.EnrollPath, strings.NewReader("x"))
	require.NoError(t, err)
	answer, err := hc.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	require.Contains(t, string(text), "too many calls of 127.0.0.1 without")

	token, err := os.ReadFile(filepath.Join(dir, "server", "join-token"))
	require.NoError(t, err)
	block := fmt.Sprintf("servers = [%q]\n  join_token = %q", m[1], strings.TrimSpace(string(token)))
	n := start(t, append([]string{"-client"}, config(t, filepath.Join(dir, "node"), clientBlock(block))...)...)
	s.tls = &api.TLSConfig{CACert: filepath.Join(dir, "server", "server", "tls", "ca.pem")}
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := s.nomad().Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 1 && nodes[0].Status == "ready", n.Output()
	})
}
