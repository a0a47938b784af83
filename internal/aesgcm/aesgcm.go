package aesgcm

import (
	"crypto/aes"
	"crypto/cipher"

	"github.com/drover-project/drover"
)

// KeySize is how many bytes a key has.
const KeySize = 32

// New returns the cipher of a key. Its Seal and Open take no nonce: it is random, and stands before what Seal returns. One key may
// encrypt 2^32 texts (NIST SP 800-38D, 8.3). Errors: Invalid for a key of another size.
func New(key []byte) (cipher.AEAD, error) {
	if len(key) != KeySize {
		return nil, drover.Errorf(drover.Invalid, "an encryption key has %d bytes, not %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "making a cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
