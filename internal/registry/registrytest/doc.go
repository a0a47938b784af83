// Package registrytest has a registry for tests, which can be told to misbehave, and signs what is in it with openssl, as cosign does.
//
// It is a server of net/http/httptest, which owns the goroutines and ends with its test.
package registrytest
