package poseidon_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
)

// CodeOcean's synchronisation must not take away the isolation that an operator chose.
func TestAReplacementKeepsWhatPoseidonHasNoFieldsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	ctx := t.Context()
	_, err := w.runners.PutEnvironment(ctx, execution.Environment{
		ID: "7", Image: "python:3", Driver: "docker", Runtime: "runsc", User: "jane", PidsLimit: 17, MemoryMB: 200,
		Network: true, Env: map[string]string{"A": "b"}, Meta: map[string]string{"team": "x"},
	})
	require.NoError(t, err)
	const put = `{"image":"python:4","prewarmingPoolSize":0,"cpuLimit":30,"memoryLimit":100,"networkAccess":false,"exposedPorts":[]}`
	for range 2 {
		res, text := w.do("PUT", "/api/v1/execution-environments/7", put)
		require.Equal(t, http.StatusNoContent, res.StatusCode, text)
	}
	env, err := w.runners.Environment(ctx, "7")
	require.NoError(t, err)
	require.Equal(t, []any{"docker", "runsc", "jane", 17, "x"}, []any{env.Driver, env.Runtime, env.User, env.PidsLimit, env.Meta["team"]})
	require.Equal(t, map[string]string{"A": "b"}, env.Env)
	require.Equal(t, []any{"python:4", 30, 32, 100, false}, []any{env.Image, env.CPU, env.MemoryMB, env.MemoryMaxMB, env.Network})
	_, text := w.do("GET", "/api/v1/execution-environments/7", "")
	require.Equal(t, `{"prewarmingPoolSize":0,"cpuLimit":30,"memoryLimit":100,"image":"python:4",`+
		`"networkAccess":false,"exposedPorts":[],"id":7}`, text)
}
