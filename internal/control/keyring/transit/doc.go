// Package transit wraps root keys with a key-encryption key that a service has and never gives away: HashiCorp Vault's or OpenBao's
// transit engine, or what speaks its two calls.
//
// Its only state is an HTTP client; it starts no goroutines of its own.
package transit
