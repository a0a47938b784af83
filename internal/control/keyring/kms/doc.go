// Package kms wraps root keys with a key-encryption key that a cloud's key management service has and never gives away: AWS KMS, Google
// Cloud KMS, and Azure Key Vault or Managed HSM.
//
// The service sees no root key. A key of 32 random bytes encrypts the root key here, and the service wraps that key: some services take
// no more than 190 bytes.
//
// What a Wrapper knows besides its configuration are tokens of the cloud until they expire; it starts no goroutines of its own.
package kms
