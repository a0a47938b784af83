package kmstest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Azure's application, and the id of the key's newest version as the service tells it.
const (
	ClientID     = "03dc33fc-16d9-4b77-8152-3ec568f8af6e"
	ClientSecret = "s3cret~"
	KeyVersion   = "https://vault.vault.azure.net/keys/drover/78deebed173b48e48f55abf87ed4cf71"
)

// Azure is a Key Vault with the services that give tokens for it.
func Azure(t *testing.T) *Service {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch verb, _ := strings.CutPrefix(r.URL.Path, "/keys/drover/"); {
		case r.URL.Path == "/metadata/identity/oauth2/token":
			q := r.URL.Query()
			if r.Header.Get("Metadata") != "true" || q.Get("resource") != "https://vault.azure.net" || q.Get("api-version") == "" {
				refuse(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
				return
			}
			answer(w, map[string]string{"access_token": "eyJ0", "expires_in": "86399"})
		case r.URL.Path == "/tenant/oauth2/v2.0/token":
			if r.ParseForm() != nil || r.PostForm.Get("client_id") != ClientID || r.PostForm.Get("client_secret") != ClientSecret ||
				r.PostForm.Get("grant_type") != "client_credentials" || r.PostForm.Get("scope") != "https://vault.azure.net/.default" {
				refuse(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "AADSTS7000215"})
				return
			}
			answer(w, map[string]any{"access_token": "eyJ0", "expires_in": 3599})
		case verb == "wrapkey" || verb == "78deebed173b48e48f55abf87ed4cf71/unwrapkey":
			azureKey(w, r, key, verb == "wrapkey")
		default:
			refuse(w, http.StatusNotFound, map[string]any{"error": map[string]string{"code": "KeyNotFound", "message": r.URL.Path}})
		}
	})
}

func azureKey(w http.ResponseWriter, r *http.Request, key *rsa.PrivateKey, wrap bool) {
	if r.Header.Get("Authorization") != "Bearer eyJ0" {
		refuse(w, http.StatusUnauthorized, map[string]any{"error": map[string]string{"code": "Unauthorized"}})
		return
	}
	var in struct{ Alg, Value string }
	err := json.NewDecoder(r.Body).Decode(&in)
	value, berr := base64.RawURLEncoding.DecodeString(in.Value)
	if err != nil || berr != nil || in.Alg != "RSA-OAEP-256" || r.URL.Query().Get("api-version") != "7.4" {
		refuse(w, http.StatusBadRequest, map[string]any{"error": map[string]string{"code": "BadParameter"}})
		return
	}
	if wrap {
		value, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, &key.PublicKey, value, nil)
	} else {
		value, err = rsa.DecryptOAEP(sha256.New(), nil, key, value, nil)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, map[string]any{"error": map[string]string{"code": "BadParameter", "message": err.Error()}})
		return
	}
	answer(w, map[string]string{"kid": KeyVersion, "value": base64.RawURLEncoding.EncodeToString(value)})
}
