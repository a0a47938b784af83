package keyring

import "context"

// Wrapper encrypts root keys with a key-encryption key that it has, or that a service has for it. It is for any number of goroutines.
type Wrapper interface {
	// Provider is the kind of the wrapper, as the configuration names it: aead, transit, awskms ….
	Provider() string
	// Name is that of its block in the configuration; may be "".
	Name() string
	// Wrap encrypts, with the key-encryption key of the id where it has it and may choose; "" = any. It returns the id of the one that it
	// used. Errors: Unavailable if a service does not answer.
	Wrap(ctx context.Context, plain []byte, preferred string) (keyID string, ciphertext []byte, err error)
	// Unwrap decrypts. Errors: NotFound if it lacks the key-encryption key, Invalid if the text is damaged, Unavailable.
	Unwrap(ctx context.Context, keyID string, ciphertext []byte) ([]byte, error)
}
