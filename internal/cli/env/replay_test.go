package env_test

import (
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestReplays plays what an execution wrote, or prints it as an asciicast.
func TestReplays(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"GET /v1/execution/x1": `{"id": "x1", "spec": {"argv": ["sh"]}, "receipt": {"cause": "exited"}}`,
		"GET /v1/execution/x1/timeline": `{"executionId": "x1", "marks": [
			{"at": 1000000, "stream": "stdout", "end": 6}, {"at": 30000000, "stream": "stderr", "end": 2}]}`,
		"GET /v1/execution/x2": `{"id": "x2", "running": true}`,
	}
	api := clitest.Serve(t, answers)
	api.Handle("GET /v1/execution/x1/attach", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if r.URL.Query().Get("observe") != "true" {
			t.Error("it does not say that it only observes")
		}
		if err != nil {
			return // the client tells
		}
		for _, m := range []string{
			`{"type": "started", "pid": 7}`, `{"type": "skipped", "stream": "stdout", "offset": 4}`, "\x01o\n", "\x02e\n",
			`{"type": "receipt", "receipt": {"cause": "exited"}}`,
		} {
			kind := websocket.MessageText
			if m[0] < ' ' {
				kind = websocket.MessageBinary
			}
			_ = c.Write(r.Context(), kind, []byte(m)) // the client may be gone
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	api.Check(
		clitest.Case{Args: "execution replay -speed 2 x1", Out: []string{"o\n"}, Err: []string{"e\n"}},
		clitest.Case{Args: "execution replay -cast x1", Out: []string{"\"version\":2", "[0.001,\"o\",\"o\\r\\n\"]\n[0.03,\"o\",\"e\\r\\n\"]"}},
		clitest.Case{Args: "execution replay x2", Code: 1, Err: []string{"still runs"}},
		clitest.Case{Args: "execution replay -speed -1 x1", Code: 2, Err: []string{"-speed -1: want a factor"}},
	)
}
