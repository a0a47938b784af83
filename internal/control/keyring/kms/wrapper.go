package kms

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/aesgcm"
	"github.com/drover-project/drover/internal/clock"
)

// Wrapper is a keyring.Wrapper.
type Wrapper struct {
	provider, name string
	service        service
}

// service wraps the key that encrypts a root key. Errors: as keyring.Wrapper's; nothing that was sent is in them.
type service interface {
	// wrap returns the id by which unwrap finds the key-encryption key again.
	wrap(ctx context.Context, key []byte) (keyID string, wrapped []byte, err error)
	// unwrap opens what wrap made with the key of the id. Errors: NotFound for one that is not the configured one.
	unwrap(ctx context.Context, keyID string, wrapped []byte) ([]byte, error)
}

// envelope is what is stored of a root key.
type envelope struct {
	Key  []byte // that encrypts Text, wrapped by the service
	Text []byte // nonce, and the root key encrypted with AES-256-GCM
}

const (
	dataKeySize = aesgcm.KeySize
	// purpose is bound to what is encrypted.
	purpose = "drover root key"
)

// Provider implements keyring.Wrapper.
func (w *Wrapper) Provider() string { return w.provider }

// Name implements keyring.Wrapper.
func (w *Wrapper) Name() string { return w.name }

// Wrap implements keyring.Wrapper. What the service wrapped it has to unwrap again before it is believed: a root key that nothing opens
// would be noticed when it is too late.
func (w *Wrapper) Wrap(ctx context.Context, plain []byte, _ string) (keyID string, ciphertext []byte, err error) {
	key := make([]byte, dataKeySize)
	if _, err := rand.Read(key); err != nil {
		return "", nil, err
	}
	keyID, wrapped, err := w.service.wrap(ctx, bytes.Clone(key))
	if err != nil {
		return "", nil, err
	}
	again, err := w.service.unwrap(ctx, keyID, wrapped)
	if err != nil {
		return "", nil, drover.Errorf(drover.CodeOf(err), "trying to unwrap what was wrapped: %w", err)
	}
	if subtle.ConstantTimeCompare(key, again) != 1 {
		return "", nil, drover.Errorf(drover.Unavailable, "keyring %s: the service unwraps something else than it was given to wrap", w.provider)
	}
	aead, err := aesgcm.New(key)
	if err != nil {
		return "", nil, err
	}
	ciphertext, err = json.Marshal(envelope{Key: wrapped, Text: aead.Seal(nil, nil, plain, []byte(purpose))})
	return keyID, ciphertext, err
}

// Unwrap implements keyring.Wrapper.
func (w *Wrapper) Unwrap(ctx context.Context, keyID string, ciphertext []byte) ([]byte, error) {
	var e envelope
	if err := json.Unmarshal(ciphertext, &e); err != nil || len(e.Key) == 0 {
		return nil, drover.Errorf(drover.Invalid, "keyring %s: what was wrapped is damaged", w.provider)
	}
	key, err := w.service.unwrap(ctx, keyID, e.Key)
	if err != nil {
		return nil, err
	}
	if len(key) != dataKeySize {
		return nil, drover.Errorf(drover.Unavailable, "keyring %s: the service answers with %d bytes, not %d", w.provider, len(key), dataKeySize)
	}
	aead, err := aesgcm.New(key)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, e.Text, []byte(purpose))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid,
			"keyring %s: what was wrapped is damaged, or the service answered with another key than key %s wrapped", w.provider, keyID)
	}
	return plain, nil
}

// Deps is what a Wrapper needs of its process.
type Deps struct {
	Name  string // of the keyring block; may be ""
	Clock clock.Clock
}
