package agent

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/drover-project/drover/internal/httpapi"
)

// publicKey is this server's in the shape of RFC 7517 and 8037.
type publicKey struct {
	Use string `json:"use"`
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	X   string `json:"x"`
}

// newPublicKey makes a key of which the private half is forgotten: no identity is signed yet, so that none can be
// forged either.
func newPublicKey() publicKey {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		return publicKey{} // cannot be: the system's randomness does not fail
	}
	encode := base64.RawURLEncoding.EncodeToString
	sum := sha256.Sum256(public)
	return publicKey{Use: "sig", Kty: "OKP", Crv: "Ed25519", Alg: "EdDSA", Kid: encode(sum[:]), X: encode(public)}
}

// jwks lists the keys that identities are checked with. Clients take the first key as the sign that a leader is there
// and has written (Nomad's own test server does): until then the list is empty.
func (f *face) jwks(w http.ResponseWriter, r *http.Request) error {
	keys := []publicKey{}
	if f.Servers.Leader() != "" {
		keys = append(keys, f.key)
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, struct {
		Keys []publicKey `json:"keys"`
	}{keys})
}
