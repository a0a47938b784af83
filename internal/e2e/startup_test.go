package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASecondAgentOnTheDataIsRefused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, "")...)
	start(t, args...)
	second := launch(t, args...)
	require.Empty(t, second.addr)
	require.Contains(t, second.Output(), "in use by another agent")
}

func TestUnknownConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	a := launch(t, append([]string{"-dev"}, config(t, "", "colour = \"red\"")...)...)
	require.Empty(t, a.addr)
	require.Contains(t, a.Output(), "colour")
}

func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-dev", "-demo"}, config(t, "", "")...)...)
	eventually(t, "the demonstration", func() (bool, string) { return strings.Contains(a.Output(), "try:"), a.Output() })
	for _, want := range []string{"stdout  Hello drover", "stderr  and I can see", "exit    0 (exited)", "times   claim"} {
		require.Contains(t, a.Output(), want)
	}
}
