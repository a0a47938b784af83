package native_test

import (
	"encoding/json"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// described holds each answer of next against the OpenAPI document: its status and the type of its body.
func described(t *testing.T, next http.Handler) http.Handler {
	t.Helper()
	text, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	type answer struct{ Content map[string]any }
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	mux := http.NewServeMux()
	for path, methods := range doc.Paths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			seen := &seen{ResponseWriter: w}
			next.ServeHTTP(seen, r)
			raw, known := methods[strings.ToLower(strings.Replace(r.Method, "HEAD", "GET", 1))]
			if !known || seen.status == 0 || seen.status >= http.StatusBadRequest {
				return
			}
			var op struct{ Responses map[string]answer }
			assert.NoError(t, json.Unmarshal(raw, &op))
			said, ok := op.Responses[strconv.Itoa(seen.status)]
			assert.True(t, ok, "%s %s answers %d, which is not described", r.Method, path, seen.status)
			if media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type")); media != "" {
				assert.Contains(t, said.Content, media, "%s %s", r.Method, path)
			}
		})
	}
	mux.Handle("/", next)
	return mux
}

// seen remembers the status of an answer.
type seen struct {
	http.ResponseWriter
	status int
}

func (s *seen) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *seen) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
