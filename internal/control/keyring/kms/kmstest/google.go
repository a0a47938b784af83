package kmstest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"hash/crc32"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// CryptoKey is the key of Google's service.
const CryptoKey = "projects/p/locations/global/keyRings/r/cryptoKeys/k"

// GoogleKMS is Cloud KMS with the services that give tokens for it.
type GoogleKMS struct {
	*Service
	Account []byte // key of a service account
	Tokens  atomic.Int64
	valid   atomic.Pointer[string]
	public  *rsa.PublicKey
}

// Google is Cloud KMS, the metadata service of a machine, and the service that gives tokens to accounts.
func Google(t *testing.T) *GoogleKMS {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := &GoogleKMS{public: &key.PublicKey}
	g.Service = serve(t, g.handle)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	g.Account, err = json.Marshal(map[string]string{
		"type": "service_account", "client_email": "drover@p.iam.gserviceaccount.com", "private_key_id": "key-1", "token_uri": g.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Host is the metadata service's address.
func (g *GoogleKMS) Host() string { return strings.TrimPrefix(g.URL, "http://") }

// Expire makes the tokens that were given invalid.
func (g *GoogleKMS) Expire() { g.valid.Store(nil) }

func (g *GoogleKMS) handle(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/computeMetadata/v1/instance/service-accounts/default/token":
		if r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		g.give(w)
	case "/token":
		if why := g.wrongAssertion(r); why != "" {
			refuse(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": why})
			return
		}
		g.give(w)
	case "/v1/" + CryptoKey + ":encrypt", "/v1/" + CryptoKey + ":decrypt":
		g.crypt(w, r)
	default:
		refuse(w, http.StatusNotFound, map[string]any{"error": map[string]any{"code": 404, "status": "NOT_FOUND", "message": r.URL.Path}})
	}
}

func (g *GoogleKMS) give(w http.ResponseWriter) {
	token := "ya29." + itoa(g.Tokens.Add(1))
	g.valid.Store(&token)
	answer(w, map[string]any{"access_token": token, "expires_in": 3599, "token_type": "Bearer"})
}

// wrongAssertion checks the token that an account signed for itself.
func (g *GoogleKMS) wrongAssertion(r *http.Request) string {
	if r.ParseForm() != nil || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "no assertion"
	}
	part := strings.Split(r.PostForm.Get("assertion"), ".")
	if len(part) != 3 {
		return "no JWT"
	}
	sum := sha256.Sum256([]byte(part[0] + "." + part[1]))
	signature, _ := base64.RawURLEncoding.DecodeString(part[2])
	if rsa.VerifyPKCS1v15(g.public, crypto.SHA256, sum[:], signature) != nil {
		return "Invalid JWT Signature."
	}
	text, _ := base64.RawURLEncoding.DecodeString(part[1])
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	if json.Unmarshal(text, &claims) != nil || claims.Iss != "drover@p.iam.gserviceaccount.com" || claims.Aud != g.URL+"/token" ||
		claims.Scope != "https://www.googleapis.com/auth/cloudkms" || claims.Exp-claims.Iat > 3600 {
		return "claims: " + string(text)
	}
	return ""
}

func (g *GoogleKMS) crypt(w http.ResponseWriter, r *http.Request) {
	token := g.valid.Load()
	if token == nil || r.Header.Get("Authorization") != "Bearer "+*token {
		refuse(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"code": 401, "status": "UNAUTHENTICATED"}})
		return
	}
	var in struct {
		Plaintext, Ciphertext             []byte
		PlaintextCrc32c, CiphertextCrc32c string
	}
	crc := func(b []byte) string { return itoa(int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))) }
	invalid := func(why string) {
		refuse(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"code": 400, "status": "INVALID_ARGUMENT", "message": why}})
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		invalid("no JSON")
		return
	}
	if strings.HasSuffix(r.URL.Path, ":encrypt") {
		if in.PlaintextCrc32c != crc(in.Plaintext) {
			invalid("plaintextCrc32c")
			return
		}
		sealed := g.seal(CryptoKey, in.Plaintext)
		answer(w, map[string]any{
			"name": CryptoKey + "/cryptoKeyVersions/1", "ciphertext": sealed, "ciphertextCrc32c": crc(sealed), "verifiedPlaintextCrc32c": true,
		})
		return
	}
	plain, ok := g.open(CryptoKey, in.Ciphertext)
	if !ok || in.CiphertextCrc32c != crc(in.Ciphertext) {
		invalid("Decryption failed: verify that 'name' refers to the correct CryptoKey.")
		return
	}
	answer(w, map[string]any{"plaintext": plain, "plaintextCrc32c": crc(plain)})
}
