package alloc_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// session serves one exec connection: it reads stdin to its end, sends the frames, and closes with the status.
func session(t *testing.T, status websocket.StatusCode, reason string, frames ...string) (h http.HandlerFunc, stdin *string) {
	t.Helper()
	stdin = new(string)
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client tells
		}
		defer c.CloseNow() // nothing is left to be said
		for {
			_, text, err := c.Read(r.Context())
			if err != nil {
				return
			}
			var f struct {
				Stdin *struct {
					Data  []byte
					Close bool
				}
			}
			if json.Unmarshal(text, &f) != nil || f.Stdin == nil {
				continue // the terminal's size, a heartbeat
			}
			*stdin += string(f.Stdin.Data)
			if f.Stdin.Close {
				break
			}
		}
		for _, f := range frames {
			if c.Write(r.Context(), websocket.MessageText, []byte(f)) != nil {
				return
			}
		}
		_ = c.Close(status, reason) // the client may have closed it
	}, stdin
}

func TestExec(t *testing.T) {
	t.Parallel()
	route := "GET /v1/client/allocation/" + running + "/exec"
	for name, c := range map[string]struct {
		args   string
		frames []string
		status websocket.StatusCode
		reason string
		want   clitest.Case
	}{
		"output and success": {
			frames: []string{`{"stdout": {"data": "b3V0"}}`, `{"stderr": {"data": "ZXJy"}}`, `{"exited": true}`},
			want:   clitest.Case{Out: []string{"out"}, Err: []string{"err"}},
		},
		"the command's code": {frames: []string{`{"exited": true, "result": {"exit_code": 7}}`}, want: clitest.Case{Code: 7}},
		"no such task": {
			status: websocket.StatusPolicyViolation, reason: "task not found",
			want: clitest.Case{Code: 3, Err: []string{"task not found"}},
		},
		"refused": {
			status: websocket.StatusPolicyViolation, reason: "no driver execs",
			want: clitest.Case{Code: 2, Err: []string{"no driver execs"}},
		},
		"a fault there": {
			status: websocket.StatusInternalError, reason: "it broke",
			want: clitest.Case{Code: 1, Err: []string{"it broke"}},
		},
		"an end without a reason": {status: websocket.StatusNormalClosure, want: clitest.Case{
			Code: 1,
			Err:  []string{"broke before the command ended"},
		}},
		"nonsense":      {frames: []string{"nonsense"}, want: clitest.Case{Code: 1, Err: []string{"reading a frame"}}},
		"without stdin": {args: "-i=false ", frames: []string{`{"exited": true}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := clitest.Serve(t, world())
			api.Stdin = "typed"
			h, stdin := session(t, c.status, c.reason, c.frames...)
			api.Handle(route, h)
			c.want.Args = "alloc exec " + c.args + "-task server 3f2a cat -n"
			api.Check(c.want)
			if c.args == "" {
				require.Equal(t, "typed", *stdin)
			} else {
				require.Empty(t, *stdin)
			}
		})
	}
}

func TestExecAsksForWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	h, _ := session(t, websocket.StatusNormalClosure, "", `{"exited": true}`)
	var query map[string][]string
	var token string
	api.Handle("GET /v1/client/allocation/"+running+"/exec", func(w http.ResponseWriter, r *http.Request) {
		query, token = r.URL.Query(), r.Header.Get("X-Nomad-Token")
		h(w, r)
	})
	require.Zero(t, api.Run("alloc", "exec", "-t", "-token", "secret", "-job", "web", "-task", "server", "--", "sh", "-c", "a b").Code)
	require.Equal(t, []string{`["sh","-c","a b"]`}, query["command"])
	require.Equal(t, []string{"true"}, query["tty"])
	require.Equal(t, "secret", token)
	api.Check(
		clitest.Case{Args: "alloc exec -task server 3f2a", Code: 2, Err: []string{"name a command: drover alloc exec 3f2a0000 sh"}},
		clitest.Case{Args: "alloc exec -escape ab -task server 3f2a sh", Code: 2, Err: []string{"want one character, or none"}},
	)
	api.Handle("GET /v1/client/allocation/"+running+"/exec", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Permission denied", http.StatusForbidden)
	})
	api.Check(clitest.Case{Args: "alloc exec -task server 3f2a sh", Code: 1, Err: []string{"403"}})
}
