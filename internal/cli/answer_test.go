package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAServerThatSaysNothing: a wrong address, or a proxy, answers 404 without a body; that is no missing job.
func TestAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	defer s.Close()
	var errs bytes.Buffer
	a := &App{Out: &bytes.Buffer{}, Err: &errs, Getenv: func(string) string { return "" }}
	require.Equal(t, exitFailure, a.Main(t.Context(), []string{"job", "status", "-address", s.URL}))
	require.Contains(t, errs.String(), "404 Not Found without a word to /v1/jobs: it is perhaps no agent")
}
