package native_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func collect(t *testing.T, s execution.Session) (stdout, stderr string, r *execution.Receipt) {
	t.Helper()
	var out [3]bytes.Buffer
	for {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		if f.Receipt != nil {
			_, err = s.Next(t.Context())
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, s.Close())
			return out[execution.Stdout].String(), out[execution.Stderr].String(), f.Receipt
		}
		if len(f.Data) > 0 {
			require.Equal(t, int64(out[f.Stream].Len()), f.Offset)
		}
		out[f.Stream].Write(f.Data)
	}
}

func TestExecuteOverOneSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	s, err := w.Execute(t.Context(), r, execution.Request{Command: "hex 00ff0a;err oh;env A;exit 3"})
	require.NoError(t, err)
	out, errs, receipt := collect(t, s)
	require.Equal(t, "\x00\xff\nb\n", out, "bytes are bytes")
	require.Equal(t, "oh\n", errs)
	require.Equal(t, 3, receipt.ExitCode)
	require.Equal(t, receipt.ExecutionID, s.ID())

	s, err = w.Execute(t.Context(), r, execution.Request{Command: "cat", Spec: execution.Spec{Stdin: true}})
	require.NoError(t, err)
	require.NoError(t, s.Write(t.Context(), []byte("in")))
	require.NoError(t, s.CloseStdin(t.Context()))
	out, _, _ = collect(t, s)
	require.Equal(t, "in", out)

	s, err = w.Execute(t.Context(), r, execution.Request{})
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.Equal(t, drover.Invalid, code(err))
	require.NoError(t, s.Close())
	_, err = w.Execute(t.Context(), "nothing", execution.Request{Command: "x"})
	require.Equal(t, drover.NotFound, code(err))
}

func TestExecutionsByID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	ctx := t.Context()
	x, err := w.StartExecution(ctx, r, execution.Request{Command: "upper;echo done", Spec: execution.Spec{Stdin: true, TTY: true, Detach: -1}})
	require.NoError(t, err)
	require.True(t, x.Running)
	require.NoError(t, w.SendStdin(ctx, x.ID, strings.NewReader("hello "), false))
	require.NoError(t, w.Resize(ctx, x.ID, execution.WindowSize{Rows: 5, Cols: 6}))
	require.Equal(t, drover.Invalid, code(w.Signal(ctx, x.ID, "NOPE")))
	first, err := w.Attach(ctx, x.ID, execution.Offsets{Stdout: 2})
	require.NoError(t, err)
	_, err = first.Next(ctx)
	require.NoError(t, err)
	f, err := first.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "LLO ", string(f.Data))
	require.Equal(t, int64(2), f.Offset)
	require.NoError(t, first.Close())
	require.NoError(t, w.SendStdin(ctx, x.ID, strings.NewReader("you"), true))
	ended, err := w.WaitExecution(ctx, x.ID)
	require.NoError(t, err)
	require.Equal(t, 0, ended.Receipt.ExitCode)
	out, err := w.Output(ctx, x.ID, "stdout", 6)
	require.Equal(t, "YOUdone\r\n", read(t, out, err))
	list, err := w.Executions(ctx, r)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, drover.Conflict, code(w.Kill(ctx, x.ID)))

	x, err = w.StartExecution(ctx, r, execution.Request{Command: "sleep 1h"})
	require.NoError(t, err)
	got, err := w.Execution(ctx, x.ID)
	require.NoError(t, err)
	require.True(t, got.Running)
	res, _ := w.raw("GET", "/v1/execution/"+x.ID+"?wait=5ms", "")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, w.Kill(ctx, x.ID))
	ended, err = w.WaitExecution(ctx, x.ID)
	require.NoError(t, err)
	require.Equal(t, execution.CauseKilled, ended.Receipt.Cause)
	_, err = w.Execution(ctx, "unknown")
	require.Equal(t, drover.NotFound, code(err))
}

func TestRunInOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim()
	result, err := w.Run(t.Context(), execution.RunRequest{
		Environment: "e", Wait: time.Minute, Files: []execution.FileChange{{Path: "x", Write: true, Data: []byte("y")}},
		Request: execution.Request{Command: "cat;err e;exit 4", Input: []byte("ahead")},
	})
	require.NoError(t, err)
	require.Equal(t, "ahead", result.Stdout)
	require.Equal(t, "e\n", result.Stderr)
	require.Equal(t, 4, result.Receipt.ExitCode)
	_, err = w.Runner(t.Context(), result.RunnerID)
	require.Equal(t, drover.Gone, code(err))

	result, err = w.Run(t.Context(), execution.RunRequest{
		Environment: "e", Wait: time.Minute, Request: execution.Request{Command: "hex ff00"},
	})
	require.NoError(t, err)
	out, _, err := result.Output()
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 0}, out)
	result, err = w.Run(t.Context(), execution.RunRequest{
		Environment: "e", Wait: time.Minute, Request: execution.Request{Command: "cat;echo over", Spec: execution.Spec{Stdin: true}},
	})
	require.NoError(t, err)
	require.Equal(t, "over\n", result.Stdout, "stdin that nobody can send to is at its end")
	_, err = w.Run(t.Context(), execution.RunRequest{Environment: "e"})
	require.Equal(t, drover.Invalid, code(err))
}

func TestTextModeNeverCutsCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := execution.Request{Command: "hex e282;hex ac;upper", Spec: execution.Spec{Stdin: true}}
	x, err := w.StartExecution(t.Context(), w.claim().ID, request)
	require.NoError(t, err)
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(w.server.URL, "http")+"/v1/execution/"+x.ID+"/attach?mode=text",
		&websocket.DialOptions{HTTPHeader: http.Header{"X-Drover-Token": {token}}})
	require.NoError(t, err)
	defer conn.CloseNow()
	var all strings.Builder
	for !strings.Contains(all.String(), "€") {
		_, data, err := conn.Read(t.Context())
		require.NoError(t, err)
		require.NotContains(t, string(data), "\ufffd")
		all.Write(data)
	}
	for bad, why := range map[string]string{
		"ls": "JSON", `{"type":"typo"}`: `unknown: \"typo\"`, `{"type":"signal","signal":"NOPE"}`: "NOPE", `{"type":"resize","rows":1}`: "rows",
	} {
		require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(bad)))
		_, data, err := conn.Read(t.Context())
		require.NoError(t, err)
		require.Contains(t, string(data), `{"type":"refused","code":"invalid","message":"`)
		require.Contains(t, string(data), why)
	}
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"stdin","data":"ü"}`)))
	_, data, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, `{"type":"stdout","data":"Ü"}`, string(data))
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"close-stdin"}`)))
	_, data, err = conn.Read(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(data), `{"type":"receipt","receipt":{"executionId":"`)
	_, _, err = conn.Read(t.Context())
	require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
}

func TestAVanishedClientEndsWhatMayNotRunDetached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	s, err := w.Execute(t.Context(), r, execution.Request{Command: "echo x;sleep 1h"})
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	x, err := w.WaitExecution(t.Context(), s.ID())
	require.NoError(t, err)
	require.Equal(t, execution.CauseKilled, x.Receipt.Cause)
	_, err = s.Next(t.Context())
	require.False(t, errors.Is(err, io.EOF))
}
