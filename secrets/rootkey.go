package secrets

import (
	"crypto/rsa"
	"math/big"
	"time"
)

// Algorithm is how a root key encrypts.
type Algorithm string

// AES256GCM is the only algorithm.
const AES256GCM Algorithm = "aes256-gcm"

// RootKeyState is what a root key is used for at present.
type RootKeyState string

// The states of root keys. A key is prepublished (if its publishing was asked for), active, then inactive or rekeying, and deprecated.
const (
	// Prepublished keys are known to who verifies, and become active at their PublishTime.
	Prepublished RootKeyState = "prepublished"
	// Active is the one key that encrypts and signs.
	Active RootKeyState = "active"
	// Inactive keys decrypt and verify what they were used for.
	Inactive RootKeyState = "inactive"
	// Rekeying keys are inactive ones whose variables are being encrypted with the active key.
	Rekeying RootKeyState = "rekeying"
	// Deprecated keys are those whose variables all were.
	Deprecated RootKeyState = "deprecated"
)

// RootKeyMeta is what everybody who may read the keyring may know of a root key.
type RootKeyMeta struct {
	KeyID       string // UUID
	Algorithm   Algorithm
	CreateTime  int64 // Unix nanoseconds
	CreateIndex uint64
	ModifyIndex uint64
	State       RootKeyState
	PublishTime int64 // Unix nanoseconds; when a prepublished key becomes active, 0 = it was never prepublished
}

// Wrapped is a root key's material, encrypted with a key-encryption key.
type Wrapped struct {
	Provider   string // of the key-encryption key: aead, transit
	Name       string // of the keyring block in the configuration; may be ""
	KeyID      string // of the key-encryption key
	Ciphertext []byte
}

// RootKey is a root key as it is stored. It is never changed.
type RootKey struct {
	RootKeyMeta
	// Wrapped has the material once for each provider that was active when the key was made; any one of them opens it.
	Wrapped []Wrapped
	// RetiredTime is when the key ceased to be active, in Unix nanoseconds, and RetiredIndex the index of that; 0 = it did not.
	RetiredTime  int64
	RetiredIndex uint64

	RSA     RSAPublicKey // of signatures with RS256
	Ed25519 []byte       // public key of signatures with EdDSA
}

// RSAPublicKey is the public half of a key that signs.
type RSAPublicKey struct {
	N []byte // big endian
	E int
}

// Key returns the key as the standard library has it.
func (k RSAPublicKey) Key() *rsa.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBytes(k.N), E: k.E}
}

// Meta returns what may be shown of the key.
func (k *RootKey) Meta() *RootKeyMeta {
	m := k.RootKeyMeta
	return &m
}

// Rotation says how the keyring is rotated.
type Rotation struct {
	Algorithm Algorithm // "" = AES256GCM
	Full      bool      // encrypt all with the new key, in the background
	Publish   time.Time // when the new key becomes active; zero = at once
}
