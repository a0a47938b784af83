package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// told are the refusals in a log: whose, and how many more of them there were.
func told(t *testing.T, folder string) (out []string) {
	t.Helper()
	for _, path := range logs(t, folder) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			var l struct {
				Payload struct {
					Request struct {
						Endpoint string
						Meta     struct {
							Remote string `json:"remote_address"`
						} `json:"request_meta"`
					}
					Decision struct{ Also int }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			if r := l.Payload.Request; r.Endpoint != "" || r.Meta.Remote != "" || strings.Contains(line, "more senders") {
				out = append(out, fmt.Sprintf("%s %s +%d", r.Meta.Remote, r.Endpoint, l.Payload.Decision.Also))
			}
		}
	}
	return out
}

// A stranger who is refused as often as he can makes two lines a minute at most, and thousands of them make a bounded number.
func TestStrangersFillNoDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l, stop := running(t, filePlace(folder, File{}))
		refuse := func(from, path string) {
			l.Refused(&Event{Class: Change, Method: "POST", Path: path, Remote: from, Status: 429, Reason: "too often"})
		}
		for i := range 1000 {
			refuse(fmt.Sprintf("10.0.0.1:%d", i+1), fmt.Sprint("/enroll", i+1))
			refuse(fmt.Sprintf("[2001:db8::%x]:1", i+1), "/enroll")
		}
		time.Sleep(refusedEach + time.Second)
		refuse("10.0.0.1:7", "/enroll")
		time.Sleep(3 * refusedEach)
		refuse("10.0.0.1:8", "/enroll")
		for i := range 5000 {
			refuse(fmt.Sprintf("10.%d.%d.9:1", i/256, i%256), "/"+strings.Repeat("x", i))
		}
		time.Sleep(2 * refusedEach)
		l.seldom.mu.Lock()
		require.Empty(t, l.refused, "who is not heard of is forgotten")
		l.seldom.mu.Unlock()
		stop()
		var none *Log
		none.Refused(&Event{})
	})
	lines := told(t, folder)
	require.Subset(t, lines, []string{
		"10.0.0.1:1 /enroll1 +0", "[2001:db8::1]:1 /enroll +0", "10.0.0.1:1000 /enroll1000 +998", "[2001:db8::3e8]:1 /enroll +998",
		"10.0.0.1:7 /enroll +0", "10.0.0.1:8 /enroll +0",
	})
	require.LessOrEqual(t, len(lines), 7+mostSenders+2, "with those that were too many as one")
	require.Equal(t, "  +4743", lines[len(lines)-1])
}
