package agent_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/agent"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// demonstrated runs the demonstration against a fake agent.
func demonstrated(t *testing.T, fake *clitest.API) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &term.App{Out: &o, Err: &e, Clock: clock.Wall{}}
	agent.Demonstrate(t.Context(), a, api.Target{Address: fake.Address()})
	return o.String(), e.String()
}

func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	fake := clitest.Serve(t, map[string]string{
		"PUT /v1/environment/playground": `{}`, "GET /v1/environment/playground/pool": `{"warm": 4}`,
		"POST /v1/runners": `{"id": "p-1"}`, "POST /v1/runner/p-1/files": `{}`, "DELETE /v1/runner/p-1": `{}`,
	})
	fake.Handle("GET /v1/runner/p-1/execute", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client tells
		}
		for _, m := range []string{
			"\x01Hello\n", "\x02and more\n",
			`{"type": "receipt", "receipt": {"cause": "exited", "userCpu": 1000000, "peakMemory": 2000000}}`,
		} {
			kind := websocket.MessageText
			if m[0] < ' ' {
				kind = websocket.MessageBinary
			}
			_ = c.Write(r.Context(), kind, []byte(m)) // the client tells
		}
		c.CloseRead(r.Context())
	})
	out, errs := demonstrated(t, fake)
	for _, part := range []string{
		`==> Making environment "playground"`, "    stdout  Hello\n    stderr  and more\n", "exit    0 (exited), 1ms of CPU, 2.0 MB at most\n",
		"==> Serving on " + fake.Address(), `"environment":"playground"`,
	} {
		require.Contains(t, out, part)
	}
	require.Empty(t, errs)
}

// TestADemonstrationThatFailsStillServes: the agent is there.
func TestADemonstrationThatFailsStillServes(t *testing.T) {
	t.Parallel()
	fake := clitest.Serve(t, map[string]string{"PUT /v1/environment/playground": `! 500 {"code": "internal", "message": "broken"}`})
	out, errs := demonstrated(t, fake)
	require.Contains(t, errs, "Error: the demonstration: broken\n")
	require.Contains(t, out, "==> Serving on ")
}
