// Package signature says by whom an image is signed: cosign's signatures by a public key, over payloads in the "simple signing" format.
// It is pure and starts no goroutines: who asks brings the signature and the payload.
//
// Where they lie in a registry is package registry's.
package signature
