// Package gittest serves git repositories to tests, with git's own server. It needs git, which scripts/deps installs.
// Its goroutines are net/http/httptest's, which end with the test.
package gittest
