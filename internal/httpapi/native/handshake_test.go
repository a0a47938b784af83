package native_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/native"
)

// behind puts something between clients and the server, and returns a client of that.
func (w *world) behind(between func(http.Handler) http.Handler) *client.Client {
	w.t.Helper()
	server := httptest.NewServer(between(w.server.Config.Handler))
	w.t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithToken(token))
	require.NoError(w.t, err)
	return c
}

// Client and server must never each wait for the other's first message, whichever of them knows the header, and
// whatever is between them. A client of a server from before the header sat there until a timeout.
func TestNobodyWaitsForTheOthersFirstMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.claim().ID
	for name, between := range map[string]func(http.Handler) http.Handler{
		"both know it": func(h http.Handler) http.Handler { return h },
		"the server does not, or a proxy drops it": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("Drover-Execution")
				h.ServeHTTP(w, r)
			})
		},
		"the answer does not come through": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&forgetful{w}, r) })
		},
	} {
		c := w.behind(between)
		for _, input := range []string{"in", strings.Repeat("long", 4<<10)} { // the long one does not fit into the header
			s, err := c.Execute(t.Context(), r, execution.Request{Command: "cat", Input: []byte(input)})
			require.NoError(t, err, name)
			out, errs, receipt := collect(t, s)
			require.Equal(t, input, out, name)
			require.Empty(t, errs, name)
			require.Zero(t, receipt.ExitCode, name)
		}
	}
}

// forgetful drops the answer's header.
type forgetful struct{ http.ResponseWriter }

func (f *forgetful) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *forgetful) WriteHeader(status int) {
	f.Header().Del("Drover-Execution")
	f.ResponseWriter.WriteHeader(status)
}

// A client that gives its request in the header and then is silent gets everything up to the receipt and the close; one
// that says nothing at all is told so.
func TestASilentClientIsServed(t *testing.T) {
	t.Parallel()
	patient, impatient := newWorld(t), newWorldWith(t, native.Config{FirstMessage: 50 * time.Millisecond})
	dial := func(w *world, header http.Header) *websocket.Conn {
		r := w.claim().ID
		header.Set("X-Drover-Token", token)
		conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(w.server.URL, "http")+"/v1/runner/"+r+"/execute?mode=text",
			&websocket.DialOptions{HTTPHeader: header})
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
	types := func(conn *websocket.Conn) (all []string) {
		for {
			_, data, err := conn.Read(t.Context())
			if err != nil {
				require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
				return all
			}
			var m struct{ Type string }
			require.NoError(t, json.Unmarshal(data, &m))
			all = append(all, m.Type)
		}
	}
	request := base64.StdEncoding.EncodeToString([]byte(`{"command":"echo x"}`))
	require.Equal(t, []string{"started", "stdout", "receipt"}, types(dial(patient, http.Header{"Drover-Execution": {request}})))
	require.Equal(t, []string{"error"}, types(dial(impatient, http.Header{})))
}

// A refused handshake is no reader who came and left: the execution, which ends with its last reader, runs on.
func TestARefusedHandshakeEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, err := w.StartExecution(t.Context(), w.claim().ID, execution.Request{Command: "sleep 1h"})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+"/v1/execution/"+x.ID+"/attach", nil)
	require.NoError(t, err)
	for k, v := range map[string]string{
		"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Origin": "http://evil.example", "X-Drover-Token": token,
	} {
		req.Header.Set(k, v)
	}
	res, err := w.server.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	x, err = w.Execution(t.Context(), x.ID)
	require.NoError(t, err)
	require.True(t, x.Running)
	require.NoError(t, w.Kill(t.Context(), x.ID))
}
