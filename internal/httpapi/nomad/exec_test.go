package nomad_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

func (w *world) exec(ctx context.Context, tty bool, command []string, stdin io.Reader,
	sizes chan api.TerminalSize,
) (code int, out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	alloc := &api.Allocation{ID: allocID, NodeID: nodeID}
	code, err = w.client.Allocations().Exec(ctx, alloc, "t", tty, command, stdin, &stdout, &stderr, sizes, nil)
	return code, stdout.String(), stderr.String(), err
}

func TestExecSeparatesStreamsAndReturnsTheExitCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code, out, errs, err := w.exec(t.Context(), false, []string{"echo", "a", "b"}, strings.NewReader(""), nil)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Equal(t, "a b\n", out)
	require.Equal(t, "warning\n", errs)
	spec := (<-w.node.sessions).spec
	require.Equal(t, []string{"echo", "a", "b"}, spec.Argv)
	require.True(t, spec.Stdin)
	require.False(t, spec.TTY)
	require.NotEmpty(t, spec.ID)
}

func TestExecPassesStdinAndEndsWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := strings.Repeat("line\n", 5000)
	code, out, _, err := w.exec(t.Context(), true, []string{"cat"}, strings.NewReader(text), nil)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, text, out)
	require.True(t, (<-w.node.sessions).spec.TTY)
}

func TestExecLosesNothingBeforeTheExit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The client keeps sending stdin that nobody reads: the exit code must still arrive.
	r, wr := io.Pipe()
	go func() { // ends with the pipe
		for {
			if _, err := wr.Write(bytes.Repeat([]byte("x"), 2048)); err != nil {
				return
			}
		}
	}()
	code, out, _, err := w.exec(t.Context(), false, []string{"flood"}, r, nil)
	_ = r.Close()
	require.NoError(t, err)
	require.Zero(t, code)
	require.Len(t, out, 5<<20)
}

func TestExecErrorsReachTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exec := func(command ...string) error {
		_, _, _, err := w.exec(t.Context(), false, command, strings.NewReader(""), nil)
		return err
	}
	require.EqualError(t, exec("missing"), "failed to start the command: no such file")
	require.EqualError(t, exec(), "command is not present")
	w.node.noExec = drover.Errorf(drover.Internal, "%s", strings.Repeat("long ", 100))
	require.ErrorContains(t, exec("echo"), "long long")
	_, err := w.client.Allocations().Exec(t.Context(), &api.Allocation{ID: "nope", NodeID: nodeID}, "t", false,
		[]string{"echo"}, strings.NewReader(""), io.Discard, io.Discard, nil, nil)
	require.EqualError(t, err, `Unknown allocation "nope"`)
	_, err = w.client.Allocations().Exec(t.Context(), &api.Allocation{ID: allocID, NodeID: nodeID}, "other", false,
		[]string{"echo"}, strings.NewReader(""), io.Discard, io.Discard, nil, nil)
	require.EqualError(t, err, `task "other" not found in allocation`)

	off := newWorld(t, func(c *nomad.Config) { c.DisableExec = true })
	_, _, _, err = off.exec(t.Context(), false, []string{"echo"}, strings.NewReader(""), nil)
	require.EqualError(t, err, "exec is disabled on this agent")
}

// dial opens the websocket without the client library.
func (w *world) dial(query string, headers http.Header) *websocket.Conn {
	w.t.Helper()
	url := "ws" + strings.TrimPrefix(w.url, "http") + "/v1/client/allocation/" + allocID + "/exec?task=t&command=%5B%22" + query
	conn, resp, err := websocket.DefaultDialer.Dial(url, headers)
	require.NoError(w.t, err)
	_ = resp.Body.Close()
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestExecFramesAreNomads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.dial("echo%22,%22hi%22%5D", nil)
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte("{}")))
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"unknown":1}`)))
	var got []string
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), err)
			break
		}
		got = append(got, string(data))
	}
	require.Equal(t, []string{
		`{"stdout":{"data":"aGkK"}}`, `{"stderr":{"data":"d2FybmluZwo="}}`,
		`{"stdout":{"close":true}}`, `{"stderr":{"close":true}}`, `{"exited":true,"result":{"exit_code":3}}`,
	}, got)
}

func TestExecResizesAndIsKilledWhenTheClientGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.dial("sleep%22%5D&tty=true", nil)
	s := <-w.node.sessions
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"tty_size":{"height":40,"width":100}}`)))
	require.Equal(t, execution.WindowSize{Rows: 40, Cols: 100}, <-s.sizes)
	require.NoError(t, conn.NetConn().Close()) // no close frame: it just went away
	<-s.closed
}

func TestExecRefusesNonsenseFrames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.dial("sleep%22%5D", nil)
	s := <-w.node.sessions
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"stdin":{"data":7}}`)))
	_, _, err := conn.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.ClosePolicyViolation), err)
	<-s.closed
}

func TestExecTokens(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, httpapi.OneToken("s3cret"))
	closes := func(conn *websocket.Conn) string {
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return err.Error()
			}
		}
	}
	require.Contains(t, closes(w.dial("echo%22%5D", nil)), "1008 (policy violation): a token is needed")
	require.Contains(t, closes(w.dial("echo%22%5D", http.Header{"X-Nomad-Token": {"wrong"}})), "Permission denied")
	require.Contains(t, closes(w.dial("echo%22%5D", http.Header{"X-Nomad-Token": {"s3cret"}})), "1000")
	for frame, want := range map[string]string{
		`{"version":1,"auth_token":"s3cret"}`: "1000",
		`{"version":1,"auth_token":"wrong"}`:  "Permission denied",
		`{"version":2,"auth_token":"s3cret"}`: "handshake version 2",
		`[]`:                                  "reading the handshake",
	} {
		conn := w.dial("echo%22%5D&ws_handshake=true", nil)
		require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(frame)))
		require.Contains(t, closes(conn), want, frame)
	}
	w.client.SetSecretID("s3cret")
	code, _, _, err := w.exec(t.Context(), false, []string{"echo"}, strings.NewReader(""), nil)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	w.client.SetSecretID("")
	_, _, err = w.client.Jobs().List(nil)
	require.ErrorContains(t, err, "403")
}

func TestManyExecsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node.sessions = make(chan *session, 64)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			code, out, errs, err := w.exec(t.Context(), false, []string{"echo", "x"}, strings.NewReader("in"), nil)
			if err != nil || code != 3 || out != "x\n" || errs != "warning\n" {
				t.Errorf("exec: %d %q %q %v", code, out, errs, err)
			}
		})
	}
	wg.Wait()
}
