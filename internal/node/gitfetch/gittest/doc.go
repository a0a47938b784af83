// Package gittest serves git repositories to tests, with git's own server. It needs git, which scripts/deps installs.
package gittest
