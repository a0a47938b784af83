package cloud

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// An agent that starts while its cloud is silent knows what the one before was told. Else servers would stop the system jobs that ask for
// it.
func TestAnswersOutliveTheAgent(t *testing.T) {
	t.Parallel()
	var id atomic.Value
	id.Store("7")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if id.Load() == "" {
			http.Error(w, "silent", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(id.Load().(string)))
	}))
	defer s.Close()
	cfg := Config{
		Root: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Asked: func(string) bool { return true },
		Retry:  func(string) Retry { return Retry{} },
		Getenv: func(key string) string { return map[string]string{"DO_ENV_URL": s.URL}[key] },
		Kept:   filepath.Join(t.TempDir(), "cloud.json"),
	}
	ids := func() (out []string) {
		require.NoError(t, New(cfg).Run(t.Context(), func(f Found) { out = append(out, f.Attributes["unique.platform.digitalocean.id"]) }))
		return out
	}
	require.Equal(t, []string{"7"}, ids())
	require.Equal(t, []string{"7"}, ids(), "the same answer is not told twice")
	id.Store("")
	require.Equal(t, []string{"7"}, ids())
	id.Store("8")
	require.Equal(t, []string{"7", "8"}, ids(), "another machine by now")
	require.Equal(t, []string{"8"}, ids())
	info, err := os.Stat(cfg.Kept)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(cfg.Kept, []byte(`{"env_digitalocean": {"Attr`), 0o600))
	require.Equal(t, []string{"8"}, ids(), "what cannot be read is asked anew")
	cfg.Asked = func(string) bool { return false }
	require.Empty(t, ids(), "what is denied by now is not told")
}
