package gittest

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Repository is one on this machine, with a work tree.
type Repository struct {
	t   *testing.T
	Dir string // the work tree
}

// New returns a repository without commits, on branch main.
func New(t *testing.T) *Repository {
	t.Helper()
	r := &Repository{t, filepath.Join(t.TempDir(), "repo")}
	require.NoError(t, os.Mkdir(r.Dir, 0o755))
	r.Git("init", "--quiet", "--initial-branch=main")
	for key, value := range map[string]string{
		"user.name": "Test", "user.email": "test@example.org", "http.receivepack": "false", "protocol.file.allow": "always",
		"uploadpack.allowAnySHA1InWant": "false", "core.hooksPath": "/dev/null", "gc.auto": "0",
	} {
		r.Git("config", key, value)
	}
	return r
}

// Git runs git in the work tree, and returns what it says.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	c := exec.CommandContext(context.Background(), "git", args...)
	c.Dir = r.Dir
	c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ALLOW_PROTOCOL=file:ext:https",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := c.CombinedOutput()
	require.NoError(r.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// Write writes a file of the work tree.
func (r *Repository) Write(path, content string) {
	r.t.Helper()
	path = filepath.Join(r.Dir, path)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(content), 0o644))
}

// Commit commits all of the work tree, and returns the commit.
func (r *Repository) Commit() string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--message=x")
	return r.Git("rev-parse", "HEAD")
}

// Handler is git's own server of the repository, as /repo.git.
func (r *Repository) Handler() http.Handler {
	r.t.Helper()
	git, err := exec.LookPath("git")
	require.NoError(r.t, err)
	return http.StripPrefix("/repo.git", &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: "/",
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Join(r.Dir, ".git"), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "HOME=/nonexistent",
		},
	})
}

// Serve serves the repository by http until the test ends, and returns its address.
func (r *Repository) Serve() string {
	r.t.Helper()
	s := httptest.NewServer(r.Handler())
	r.t.Cleanup(s.Close)
	return s.URL + "/repo.git"
}
