package socket_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/socket"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "http://example.com",
	}
	for name, tc := range map[string]struct {
		header, value string
		status        int
		reason        string
	}{
		"good":           {},
		"no upgrade":     {"Upgrade", "", 426, "Upgrade header"},
		"not upgraded":   {"Connection", "close", 426, "Connection header"},
		"old version":    {"Sec-WebSocket-Version", "8", 400, "version"},
		"no key":         {"Sec-WebSocket-Key", "", 400, "Key"},
		"a strange site": {"Origin", "http://evil.example", 403, "evil.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
			for k, v := range good {
				r.Header.Set(k, v)
			}
			if tc.header != "" {
				r.Header.Set(tc.header, tc.value)
			}
			refusal := socket.Check(r)
			if tc.status == 0 {
				require.Nil(t, refusal)
				return
			}
			require.Equal(t, tc.status, refusal.Status)
			require.Contains(t, refusal.Reason, tc.reason)
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	for k, v := range map[string]string{
		"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		r.Header.Set(k, v)
	}
	b.ReportAllocs()
	for b.Loop() {
		socket.Check(r)
	}
}
