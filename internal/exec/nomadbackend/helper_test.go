package nomadbackend

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// cluster answers each exec with frames, of which "ID" is that of the wrapped command, and leaves the connection open.
func cluster(t *testing.T, frames ...map[string]any) *Backend {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/exec") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var argv []string
		if json.Unmarshal([]byte(r.URL.Query().Get("command")), &argv) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var up websocket.Upgrader
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for _, f := range frames {
			for _, stream := range []string{"stdout", "stderr"} {
				if text, ok := f[stream].(string); ok {
					data := []byte(strings.ReplaceAll(text, "ID", argv[4]))
					f = map[string]any{stream: map[string]any{"data": data}}
				}
			}
			if conn.WriteJSON(f) != nil {
				return
			}
		}
		for err == nil { // until the client goes
			_, _, err = conn.ReadMessage()
		}
	}))
	t.Cleanup(s.Close)
	b := newBackend(t, s.URL)
	t.Cleanup(b.client.Close)
	return b
}

// A wrapped helper ends with its trailers, which are not its output; who ends without them was cut.
func TestHelpersEndWithTheirTrailers(t *testing.T) {
	t.Parallel()
	spec := execution.Spec{ID: "x9", Argv: []string{"true"}}
	var out bytes.Buffer
	b := cluster(
		t, map[string]any{"stdout": "hel"}, map[string]any{"stderr": "\x1eID 0\x1e"}, map[string]any{"stdout": "lo\x1eID"},
		map[string]any{"stdout": " 0\x1e"},
	)
	require.NoError(t, b.runWrapped(t.Context(), "a", spec, nil, &out))
	require.Equal(t, "hello", out.String())

	b = cluster(t, map[string]any{"stderr": "no such file\n\x1eID 44\x1e"}, map[string]any{"stdout": "\x1eID 44\x1e"})
	err := b.runWrapped(t.Context(), "a", spec, nil, nil)
	require.Equal(t, &failure{44, "no such file\n"}, err)

	b = cluster(t, map[string]any{"stdout": "hel"}, map[string]any{"exited": true, "result": map[string]any{"exit_code": 0}})
	require.Equal(t, drover.Unavailable, drover.CodeOf(b.runWrapped(t.Context(), "a", spec, nil, nil)))

	b = cluster(t, map[string]any{"exited": true, "result": map[string]any{"exit_code": 127}})
	require.Equal(t, &failure{127, ""}, b.runWrapped(t.Context(), "a", spec, nil, nil))
}

// Where an image names no directory, commands start in the task's own: "./*" is not to empty the root.
func TestTheRootIsNobodysWorkingDirectory(t *testing.T) {
	t.Parallel()
	task := t.TempDir()
	require.Equal(t, task, pwd(t, "/", task))
	require.Equal(t, "/usr", pwd(t, "/usr", task))
}

func pwd(t *testing.T, from, task string) string {
	t.Helper()
	argv := wrap(execution.Spec{ID: "w", Privileged: true, Argv: []string{"pwd"}})
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = from, []string{"PATH=/usr/bin:/bin", "NOMAD_TASK_DIR=" + task}
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(newCutter("w").take(out)))
}
