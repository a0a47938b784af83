package transit

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// engine answers as Vault's transit engine does, with a key of its own.
func engine(t *testing.T, token string) *httptest.Server {
	t.Helper()
	block, err := aes.NewCipher(make([]byte, 32))
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail := func(status int, text string) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{text}})
		}
		if r.Header.Get("X-Vault-Token") != token {
			fail(http.StatusForbidden, "permission denied")
			return
		}
		var in struct{ Plaintext, Ciphertext string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		answer := map[string]string{}
		switch r.Method + " " + r.URL.Path {
		case "POST /v1/engine/encrypt/drover":
			plain, err := base64.StdEncoding.DecodeString(in.Plaintext)
			if err != nil {
				fail(http.StatusBadRequest, "plaintext is no base64")
				return
			}
			nonce := make([]byte, 12)
			answer["ciphertext"] = "vault:v1:" + base64.StdEncoding.EncodeToString(aead.Seal(nonce, nonce, plain, nil))
		case "POST /v1/engine/decrypt/drover":
			text, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(in.Ciphertext, "vault:v1:"))
			if err == nil && len(text) < 12 {
				text = make([]byte, 12)
			}
			if err == nil {
				text, err = aead.Open(nil, text[:12], text[12:], nil)
			}
			if err != nil {
				fail(http.StatusBadRequest, "cipher: message authentication failed")
				return
			}
			answer["plaintext"] = base64.StdEncoding.EncodeToString(text)
		default:
			fail(http.StatusNotFound, "no handler for route")
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": answer})
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestTheServiceWrapsAndUnwraps(t *testing.T) {
	t.Parallel()
	srv := engine(t, "s.right")
	w := New(Config{Address: srv.URL + "/", Token: "s.right", Mount: "/engine/", Key: "drover"})
	id, text, err := w.Wrap(t.Context(), []byte("the root key"), "")
	require.NoError(t, err)
	require.Equal(t, "drover", id)
	require.NotContains(t, string(text), "the root key")
	plain, err := w.Unwrap(t.Context(), id, text)
	require.NoError(t, err)
	require.Equal(t, "the root key", string(plain))

	_, err = w.Unwrap(t.Context(), "another", text)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, err = w.Unwrap(t.Context(), id, []byte("vault:v1:AAAA"))
	require.ErrorContains(t, err, "message authentication failed")
}

func TestRefusalsSayWhyAndNoSecret(t *testing.T) {
	t.Parallel()
	srv := engine(t, "s.right")
	w := New(Config{Address: srv.URL, Token: "s.wrong", Mount: "engine", Key: "drover"})
	_, _, err := w.Wrap(t.Context(), []byte("the root key"), "")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "permission denied")
	require.NotContains(t, err.Error(), "s.wrong")
	require.NotContains(t, err.Error(), base64.StdEncoding.EncodeToString([]byte("the root key")))
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(other.Close)
	_, _, err = New(Config{Address: other.URL, Key: "drover"}).Wrap(t.Context(), []byte("x"), "")
	require.ErrorContains(t, err, "something else than the transit engine")
	_, err = New(Config{Address: "http://127.0.0.1:1", Key: "drover"}).Unwrap(t.Context(), "drover", nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}
