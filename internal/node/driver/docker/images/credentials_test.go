package images

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestRegistryAndTagOfAReference(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{
		"busybox": hub, "a/b:1": hub, "docker.io/a/b": hub, "ghcr.io/a/b": "ghcr.io", "localhost/a": "localhost",
		"127.0.0.1:5000/a:1": "127.0.0.1:5000",
	} {
		require.Equal(t, want, registryOf(ref), ref)
	}
	for ref, want := range map[string]bool{
		"busybox": true, "a/b:latest": true, "a:1": false, "h:5000/a": true, "h:5000/a:1": false, "a@sha256:00": false,
	} {
		require.Equal(t, want, latest(ref), ref)
	}
}

// TestAccountsOfTheNode come from docker's file by registry, through helpers that it names, and from the helper.
func TestAccountsOfTheNode(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, []byte(text), mode))
		return p
	}
	write(
		"docker-credential-good",
		"#!/bin/sh\nread s; case $s in\n"+
			"helped.io|all.io) echo \"{\\\"Username\\\":\\\"h\\\",\\\"Secret\\\":\\\"$s\\\"}\";;\n"+
			"*) echo credentials not found in native keychain; exit 1;; esac\n",
		0o755,
	)
	write("docker-credential-bad", "#!/bin/sh\necho no cloud; exit 1\n", 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	file := write(
		"config.json",
		`{"auths": {"https://index.docker.io/v1/": {"auth": "dTpwOng="}, "plain.io": {"username": "a", "password": "b"},
			"token.io": {"identitytoken": "t"}},
		"credHelpers": {"helped.io": "good"}}`,
		0o600,
	)
	s := New(Config{Name: "docker", Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), AuthConfig: file, AuthHelper: "good"})
	for image, want := range map[string]Account{
		"x/y": {Username: "u", Password: "p:x", Server: hub}, "plain.io/x": {Username: "a", Password: "b", Server: "plain.io"},
		"token.io/x": {Token: "t", Server: "token.io"}, "helped.io/x": {Username: "h", Password: "helped.io", Server: "helped.io"},
		"all.io/x": {Username: "h", Password: "all.io", Server: "all.io"}, "other.io/x": {},
	} {
		got, err := s.credentials(t.Context(), Request{Ref: image})
		require.NoError(t, err, image)
		require.Equal(t, want, got, image)
	}
	got, err := s.credentials(t.Context(), Request{Ref: "plain.io/x", Account: Account{Username: "mine"}})
	require.NoError(t, err)
	require.Equal(t, "mine", got.Username)
	s.cfg.AuthHelper = "bad"
	_, err = s.credentials(t.Context(), Request{Ref: "other.io/x"})
	require.ErrorContains(t, err, "docker-credential-bad")
	require.ErrorContains(t, err, "no cloud")
	_, err = s.credentials(t.Context(), Request{Ref: "other.io/x", AccountOptional: true})
	require.NoError(t, err)
	s.cfg.AuthConfig = filepath.Join(dir, "none")
	_, err = s.credentials(t.Context(), Request{Ref: "plain.io/x"})
	require.ErrorContains(t, err, "auth.config")
}
