package signature

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/drover-project/drover"
)

// Key is a public key that images are signed by.
type Key struct {
	ID     string // the beginning of the SHA-256 of the key in DER, hexadecimal
	public *ecdsa.PublicKey
}

// maxText bounds a key's text, in bytes: it has about 180.
const maxText = 1024

// idBytes of a key's digest are enough to tell keys apart, and can be read aloud.
const idBytes = 8

// ParseKeys reads keys in PEM, one a text, as `cosign generate-key-pair` writes cosign.pub. Errors: Invalid, with the place of the first
// that is none.
func ParseKeys(texts []string) ([]Key, error) {
	keys := make([]Key, 0, len(texts))
	for i, text := range texts {
		key, why := parseKey(text)
		if why != "" {
			return nil, drover.Errorf(drover.Invalid, "key %d: %s: give an ECDSA P-256 public key in PEM, as cosign.pub has it", i+1, why)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func parseKey(text string) (k Key, why string) {
	if len(text) > maxText {
		return k, fmt.Sprintf("it has %d bytes, at most %d are read", len(text), maxText)
	}
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return k, "it is no PEM block"
	case strings.Contains(block.Type, "PRIVATE"):
		return k, "it is a private key, which belongs on no server"
	case block.Type != "PUBLIC KEY":
		return k, fmt.Sprintf("it is a PEM block of %q", block.Type)
	case strings.TrimSpace(string(rest)) != "":
		return k, "something follows the key"
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return k, "it cannot be read"
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return k, "it is another kind of key"
	}
	sum := sha256.Sum256(block.Bytes)
	return Key{ID: hex.EncodeToString(sum[:idBytes]), public: public}, ""
}

// IDs are the ids of keys, in their order.
func IDs(keys []Key) []string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.ID
	}
	return ids
}

// By returns which of the keys made the signature, ECDSA in ASN.1, of what has the SHA-256; "" if none did.
func By(keys []Key, sum, signature []byte) string {
	for _, k := range keys {
		if ecdsa.VerifyASN1(k.public, sum, signature) {
			return k.ID
		}
	}
	return ""
}
