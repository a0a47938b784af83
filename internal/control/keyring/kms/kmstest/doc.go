// Package kmstest has key management services of clouds for tests. They check who asks, and how it is signed, by code of their own, and can
// be made to fail.
//
// They are servers of net/http/httptest, which own the goroutines and end with their test.
package kmstest
