package keyring

import (
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/aesgcm"
	"github.com/drover-project/drover/secrets"
)

// rsaBits is the size that clouds' identity services take.
const rsaBits = 2048

// material is what is wrapped of a root key.
type material struct {
	KeyID   string // of the root key, so that nobody passes one off as another
	AES     []byte // 32 bytes
	RSA     []byte // PKCS #1
	Ed25519 []byte // seed
}

// opened is a root key that can be used. It is never changed.
type opened struct {
	id   string
	aead cipher.AEAD
	rsa  *rsa.PrivateKey
	ed   ed25519.PrivateKey
}

// generate makes the material of a new root key.
func generate(id string) (*material, error) {
	m := &material{KeyID: id, AES: make([]byte, 32)}
	if _, err := rand.Read(m.AES); err != nil {
		return nil, err
	}
	r, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "making a signing key: %w", err)
	}
	_, e, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "making a signing key: %w", err)
	}
	m.RSA, m.Ed25519 = x509.MarshalPKCS1PrivateKey(r), e.Seed()
	return m, nil
}

// public fills in the public halves.
func (o *opened) public(k *secrets.RootKey) {
	k.RSA = secrets.RSAPublicKey{N: o.rsa.N.Bytes(), E: o.rsa.E}
	k.Ed25519 = o.ed.Public().(ed25519.PublicKey)
}

// open makes the keys of the material usable. Errors: Invalid for what is none.
func (m *material) open() (*opened, error) {
	o := &opened{id: m.KeyID}
	var err error
	if o.aead, err = aesgcm.New(m.AES); err != nil {
		return nil, fmt.Errorf("root key %s: %w", m.KeyID, err)
	}
	if o.rsa, err = x509.ParsePKCS1PrivateKey(m.RSA); err != nil {
		return nil, drover.Errorf(drover.Invalid, "root key %s: its RSA key cannot be read", m.KeyID)
	}
	if len(m.Ed25519) != ed25519.SeedSize {
		return nil, drover.Errorf(drover.Invalid, "root key %s: its Ed25519 key has %d bytes, not %d", m.KeyID, len(m.Ed25519), ed25519.SeedSize)
	}
	o.ed = ed25519.NewKeyFromSeed(m.Ed25519)
	return o, nil
}

// marshal returns what is wrapped.
func (m *material) marshal() ([]byte, error) { return json.Marshal(m) }

// parse reads material that was unwrapped for the root key. Errors: Invalid, without a word of what it read.
func parse(plain []byte, id string) (*opened, error) {
	var m material
	if json.Unmarshal(plain, &m) != nil {
		return nil, drover.Errorf(drover.Invalid, "root key %s: what was wrapped is no root key", id)
	}
	if m.KeyID != id {
		return nil, drover.Errorf(drover.Invalid, "root key %s: what was wrapped is another root key", id)
	}
	return m.open()
}

// ed25519ID is the id of a root key's second signing key: ids are unique in a set of keys.
func ed25519ID(id string) string { return id + ".ed25519" }

// webKeys are the public keys of a root key, as RFC 7517 has them.
func webKeys(k *secrets.RootKey) []jose.JSONWebKey {
	return []jose.JSONWebKey{
		{Key: k.RSA.Key(), KeyID: k.KeyID, Algorithm: string(jose.RS256), Use: "sig"},
		{Key: ed25519.PublicKey(k.Ed25519), KeyID: ed25519ID(k.KeyID), Algorithm: string(jose.EdDSA), Use: "sig"},
	}
}
