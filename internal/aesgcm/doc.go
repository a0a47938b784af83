// Package aesgcm makes the cipher that everything at rest is encrypted with: AES-256 in Galois counter mode, a random nonce before each
// text. Whose the key is, and to what a text is bound, its users say.
// It starts no goroutines; a cipher may be used by several.
package aesgcm
