package poseidon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
)

type socket struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

// run executes a request body's command and connects.
func (w *world) run(runner, request string) *socket {
	w.t.Helper()
	res, body := w.do("POST", "/api/v1/runners/"+runner+"/execute", request)
	require.Equal(w.t, http.StatusOK, res.StatusCode, body)
	return w.dial(between(w.t, body, `"websocketUrl":"`, `"`))
}

func (w *world) dial(url string) *socket {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	w.t.Cleanup(cancel)
	conn, res, err := websocket.Dial(ctx, url, nil)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusSwitchingProtocols, res.StatusCode)
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return &socket{w.t, w.t.Context(), conn}
}

// read returns the next message, which may take as long as any other: what is much is not late.
func (s *socket) read() (websocket.MessageType, []byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, soon)
	defer cancel()
	return s.conn.Read(ctx)
}

// next returns the next message as it was sent.
func (s *socket) next() string {
	s.t.Helper()
	kind, data, err := s.read()
	require.NoError(s.t, err)
	require.Equal(s.t, websocket.MessageText, kind)
	return string(data)
}

// rest returns all messages up to the regular close, output joined.
func (s *socket) rest() (stdout, stderr string, last []string) {
	s.t.Helper()
	var out, errs strings.Builder
	for {
		_, data, err := s.read()
		if err != nil {
			require.Equal(s.t, websocket.StatusNormalClosure, websocket.CloseStatus(err), err)
			return out.String(), errs.String(), last
		}
		var m struct {
			Type string
			Data any
		}
		require.NoError(s.t, json.Unmarshal(data, &m))
		switch m.Type {
		case "stdout":
			out.WriteString(m.Data.(string))
		case "stderr":
			errs.WriteString(m.Data.(string))
		default:
			last = append(last, string(data))
		}
	}
}

func (s *socket) write(text string) {
	s.t.Helper()
	require.NoError(s.t, s.conn.Write(s.ctx, websocket.MessageText, []byte(text)))
}

func TestWebSocketMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	for name, tc := range map[string]struct {
		request        string
		stdout, stderr string
		last           []string
	}{
		"streams apart": {
			`{"command":"echo out;err mistake;exit 3"}`, "out\r\n", "mistake\n",
			[]string{`{"type":"start"}`, `{"type":"exit","data":3}`},
		},
		"uint8":      {`{"command":"exit 300"}`, "", "", []string{`{"type":"start"}`, `{"type":"exit","data":44}`}},
		"time limit": {`{"command":"echo a\nsleep 1h","timeLimit":1}`, "a\r\n", "", []string{`{"type":"start"}`, `{"type":"timeout"}`}},
		"negative":   {`{"command":"sleep 1h","timeLimit":-1}`, "", "", []string{`{"type":"start"}`, `{"type":"timeout"}`}},
		"environment": {
			`{"command":"env","environment":{"A":"two words"}}`, "A=two words\r\nCODEOCEAN=true\r\nTERM=xterm\r\n", "",
			[]string{`{"type":"start"}`, `{"type":"exit","data":0}`},
		},
		"privileged": {
			`{"command":"whoami","privilegedExecution":true}`, "root\r\n", "",
			[]string{`{"type":"start"}`, `{"type":"exit","data":0}`},
		},
		"unprivileged":  {`{"command":"whoami"}`, "\r\n", "", []string{`{"type":"start"}`, `{"type":"exit","data":0}`}},
		"not UTF-8":     {`{"command":"hex ff41"}`, "\ufffdA", "", []string{`{"type":"start"}`, `{"type":"exit","data":0}`}},
		"cut character": {`{"command":"hex 61e282"}`, "a\ufffd\ufffd", "", []string{`{"type":"start"}`, `{"type":"exit","data":0}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.run(runner, tc.request)
			s.t = t
			stdout, stderr, last := s.rest()
			require.Equal(t, tc.stdout, stdout)
			require.Equal(t, tc.stderr, stderr)
			require.Equal(t, tc.last, last)
		})
	}
	require.Equal(t, http.StatusNoContent, first(w.do("DELETE", "/api/v1/runners/"+runner, "")).StatusCode, "all of it left the runner usable")
}

// TestWebSocketInactive: an execution without a limit lasts as long as the runner's inactivity timeout lets a silent
// one; with a limit, that one counts.
func TestWebSocketInactive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	w.claim()
	claim := func() string {
		exectest.AwaitWarm(t, w.runners, 2)
		_, body := w.do("POST", "/api/v1/runners", `{"executionEnvironmentId":1,"inactivityTimeout":1}`)
		return between(t, body, `{"runnerId":"`, `"`)
	}
	silent, limited := claim(), claim()
	limitedRun := w.run(limited, `{"command":"sleep 1500ms","timeLimit":30}`)
	_, _, last := w.run(silent, `{"command":"sleep 1h"}`).rest()
	require.Equal(t, []string{`{"type":"start"}`, `{"type":"timeout"}`}, last)
	require.Equal(t, http.StatusGone, first(w.do("DELETE", "/api/v1/runners/"+silent, "")).StatusCode)
	_, _, last = limitedRun.rest()
	require.Equal(t, []string{`{"type":"start"}`, `{"type":"exit","data":0}`}, last)
}

func first(res *http.Response, _ string) *http.Response { return res }

func TestWebSocketStdin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	s := w.run(w.claim(), `{"command":"upper"}`)
	require.Equal(t, `{"type":"start"}`, s.next())
	s.write("hello\n")
	require.Equal(t, `{"type":"stdout","data":"HELLO\r\n"}`, s.next())
	require.NoError(t, s.conn.Write(s.ctx, websocket.MessageBinary, []byte("<&>")), "Poseidon stops reading here")
	require.Equal(t, `{"type":"stdout","data":"<&>"}`, s.next())
	s.write("\x04")
	require.Equal(t, `{"type":"exit","data":0}`, s.next())
	_, _, err := s.read()
	require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
}

func TestCtrlC(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	s := w.run(w.claim(), `{"command":"sleep 1h"}`)
	s.write("\x03")
	_, _, last := s.rest()
	require.Equal(t, `{"type":"exit","data":130}`, last[1])
}

func TestCharactersAreNeverCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	s := w.run(w.claim(), `{"command":"hex e2;hex 82;hex acf0;hex 9f98;hex 80;echo"}`)
	stdout, _, _ := s.rest()
	require.Equal(t, "€😀\r\n", stdout)
}

func TestMuchOutputArrivesWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	s := w.run(w.claim(), `{"command":"spew 8000000"}`)
	stdout, _, last := s.rest()
	require.Len(t, stdout, 8_000_000)
	require.Equal(t, `{"type":"exit","data":0}`, last[1])
	require.True(t, strings.HasPrefix(stdout, "abcdef"))
}

func TestASecondConnectIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	_, body := w.do("POST", "/api/v1/runners/"+runner+"/execute", `{"command":"echo x"}`)
	url := between(t, body, `"websocketUrl":"`, `"`)
	w.dial(url).rest()
	_, res, err := websocket.Dial(t.Context(), url, nil)
	require.Error(t, err)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.Equal(t, 1, w.control.Node.Started())
}

func TestOutOfMemoryEndsTheRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	s := w.run(runner, `{"command":"oom"}`)
	_, _, last := s.rest()
	require.Equal(t, `{"type":"error","data":"the allocation was OOM Killed"}`, last[1])
	require.Equal(t, http.StatusGone, first(w.do("DELETE", "/api/v1/runners/"+runner, "")).StatusCode)
}

func TestDeletingTheRunnerEndsItsExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	s := w.run(runner, `{"command":"echo on;sleep 1h"}`)
	require.Equal(t, `{"type":"start"}`, s.next())
	require.Equal(t, `{"type":"stdout","data":"on\r\n"}`, s.next())
	require.Equal(t, http.StatusNoContent, first(w.do("DELETE", "/api/v1/runners/"+runner, "")).StatusCode)
	require.Equal(t, `{"type":"error","data":"the allocation stopped as expected"}`, s.next())
	_, _, err := s.read()
	require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
}

func TestAClientThatLeavesEndsItsExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	s := w.run(runner, `{"command":"echo on;sleep 1h"}`)
	s.next()
	s.next()
	require.NoError(t, s.conn.CloseNow(), "without a close frame")
	w.awaitIdle(runner)

	s = w.run(runner, `{"command":"echo on;sleep 1h"}`)
	s.next()
	require.NoError(t, s.conn.Close(websocket.StatusGoingAway, ""))
	w.awaitIdle(runner)
}

// awaitIdle waits until nothing runs in the runner.
func (w *world) awaitIdle(runner string) {
	w.t.Helper()
	deadline := time.Now().Add(soon)
	for {
		r, err := w.runners.Runner(w.t.Context(), runner)
		require.NoError(w.t, err)
		if r.State == execution.RunnerClaimed {
			return
		}
		require.True(w.t, time.Now().Before(deadline), "still running")
		time.Sleep(time.Millisecond) // the socket is real, so no event tells
	}
}

func TestPingsFindDeadPeersAndSpareLiveOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{PingEvery: time.Millisecond}, "")
	s := w.run(w.claim(), `{"command":"sleep 100ms;echo alive"}`)
	stdout, _, _ := s.rest() // reading answers the pings
	require.Equal(t, "alive\r\n", stdout)
}

func TestHealthAlertsOnADepletingPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{PrewarmingThreshold: 0.6}, "")
	w.claim()
	exectest.AwaitWarm(t, w.runners, 2)
	w.control.StopRefill()
	_, _ = w.do("POST", "/api/v1/runners", `{"executionEnvironmentId":1}`)
	res, body := w.do("GET", "/api/v1/health", "")
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, `{"message":"the prewarming pool is depleting: environments 1","errorCode":"PREWARMING_POOL_DEPLETING"}`, body)
}

func TestRawFilesHaveTheirLengthAndName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	res, _ := w.do("PATCH", "/api/v1/runners/"+runner+"/files", `{"copy":[{"path":"a \"q\" ü.bin","content":"AAEC"}]}`)
	require.Equal(t, http.StatusNoContent, res.StatusCode)
	res, body := w.do("GET", "/api/v1/runners/"+runner+"/files/raw?path=a+%22q%22+%C3%BC.bin", "", "Accept-Encoding: gzip")
	require.Equal(t, "\x00\x01\x02", body)
	require.Equal(t, int64(3), res.ContentLength)
	require.Equal(t, `attachment; filename*=utf-8''a%20%22q%22%20%C3%BC.bin`, res.Header.Get("Content-Disposition"))

	raw := "/api/v1/runners/" + runner + "/files/raw?path=a+%22q%22+%C3%BC.bin"
	res, body = w.do("GET", raw, "", "Range: bytes=1-")
	require.Equal(t, http.StatusPartialContent, res.StatusCode)
	require.Equal(t, "bytes 1-2/3", res.Header.Get("Content-Range"))
	require.Equal(t, "\x01\x02", body)
	res, body = w.do("GET", raw, "", "Range: bytes=3-")
	require.Equal(t, http.StatusRequestedRangeNotSatisfiable, res.StatusCode)
	require.Equal(t, `{"message":"Range: the file has 3 bytes"}`, body)
	res, _ = w.do("GET", raw, "", "Range: bytes=x")
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
}

// A refused handshake starts nothing and takes nothing: who sent it may try again.
func TestARefusedHandshakeChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, poseidon.Config{}, "")
	runner := w.claim()
	_, body := w.do("POST", "/api/v1/runners/"+runner+"/execute", `{"command":"echo x"}`)
	url := between(t, body, `"websocketUrl":"`, `"`)
	path := strings.TrimPrefix(url, "ws://"+w.server.Listener.Addr().String())
	for status, headers := range map[int][]string{
		400: {"Sec-WebSocket-Version: 8"},
		403: {"Sec-WebSocket-Version: 13", "Origin: http://evil.example"},
	} {
		headers = append(headers, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
		require.Equal(t, status, first(w.do("GET", path, "", headers...)).StatusCode)
	}
	require.Zero(t, w.control.Node.Started())
	stdout, _, _ := w.dial(url).rest()
	require.Equal(t, "x\r\n", stdout)
}
