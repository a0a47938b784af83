package api

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"NOMAD_ADDR": "http://n:1", "DROVER_TOKEN": "d", "NOMAD_TOKEN": "n", "NOMAD_NAMESPACE": "ns",
		"NOMAD_SKIP_VERIFY": "1",
	}
	got := Target{Namespace: "flag"}.Resolved(func(k string) string { return env[k] })
	require.Equal(t, "http://n:1", got.Address)
	require.Equal(t, "d", got.Token, "Drover's own comes first")
	require.Equal(t, "flag", got.Namespace, "a flag comes before all")
	require.True(t, got.SkipVerify)
	require.Equal(t, Target{Address: DefaultAddress}, Target{}.Resolved(func(string) string { return "" }))
	_, err := New(Target{CACert: "/no/such"})
	require.ErrorContains(t, err, "-ca-cert")
	_, err = NewNative(Target{CAPath: "/no/such"})
	require.ErrorContains(t, err, "-ca-path")
	_, err = New(Target{ClientKey: "/no/such"})
	require.ErrorContains(t, err, "-client-cert and -client-key")
}

func TestATokenFromAFile(t *testing.T) {
	t.Parallel()
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := write("good", "  secret\n")
	env := func(values map[string]string) func(string) string { return func(k string) string { return values[k] } }
	for name, c := range map[string]struct {
		given Target
		env   map[string]string
		want  string
	}{
		"flag":                       {Target{TokenFile: good}, nil, "secret"},
		"flag before environment":    {Target{TokenFile: good}, map[string]string{"NOMAD_TOKEN": "n"}, "secret"},
		"environment":                {Target{}, map[string]string{"DROVER_TOKEN_FILE": good}, "secret"},
		"token before file, in both": {Target{}, map[string]string{"DROVER_TOKEN_FILE": "/no/such", "DROVER_TOKEN": "d"}, "d"},
		"token flag before all":      {Target{Token: "t"}, map[string]string{"DROVER_TOKEN_FILE": "/no/such"}, "t"},
		"nothing":                    {Target{}, nil, ""},
	} {
		got, err := c.given.Resolved(env(c.env)).Secret()
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	client, err := New(Target{TokenFile: good})
	require.NoError(t, err)
	require.Equal(t, "secret", client.Token)
	for want, bad := range map[string]Target{
		"one of them, please":       {TokenFile: good, Token: "x"},
		"no such file":              {TokenFile: good + "x"},
		"must have a token alone":   {TokenFile: write("two", "a\nb\n")},
		"a token alone, on one":     {TokenFile: write("empty", "\n")},
		"have a token alone, on on": {TokenFile: write("long", strings.Repeat("x", maxToken+1))},
	} {
		_, err := New(bad)
		require.ErrorContains(t, err, want)
		_, err = NewNative(bad)
		require.ErrorContains(t, err, want)
	}
}

// TestASocket: commands of a task reach the agent at its socket, with both clients, and are told of one that is not there.
func TestASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "api.sock")
	target := Target{Address: "unix://" + path}
	ask := func() (text string, err error) {
		c, err := New(target)
		require.NoError(t, err)
		res, err := c.Open(t.Context(), http.MethodGet, "/v1/status/leader", nil, nil)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	_, err := ask()
	require.ErrorContains(t, err, path+": connect: no such file")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+r.URL.Path)
	})}}
	s.Start()
	defer s.Close()
	text, err := ask()
	require.NoError(t, err)
	require.Equal(t, "localhost/v1/status/leader", text)
	native, err := NewNative(target)
	require.NoError(t, err)
	_, err = native.Runners(t.Context(), "")
	require.Error(t, err)
	require.NotEqual(t, drover.Unavailable, drover.CodeOf(err), "it was reached: %v", err)
}
