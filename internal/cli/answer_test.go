package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// TestAServerThatSaysNothing: a wrong address, or a proxy, answers 404 without a body; that is no missing job.
func TestAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	defer s.Close()
	var errs bytes.Buffer
	app := &term.App{Out: &bytes.Buffer{}, Err: &errs, Getenv: func(string) string { return "" }, Clock: clock.Wall{}}
	require.Equal(t, term.ExitFailure, Main(t.Context(), app, Parts{}, []string{"job", "status", "-address", s.URL}))
	require.Contains(t, errs.String(), "404 Not Found without a word to /v1/jobs: it is perhaps no agent")
}
