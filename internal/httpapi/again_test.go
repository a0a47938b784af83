package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/replay"
)

// movedRelay says that all is answered here, until it answers itself: how often it was asked, and what body it got.
type movedRelay struct {
	here, asked int
	got         string
}

func (m *movedRelay) Elsewhere(w http.ResponseWriter, r *http.Request, _ Where) (bool, error) {
	if m.asked++; m.asked <= m.here {
		return false, nil
	}
	body, err := io.ReadAll(r.Body)
	m.got = string(body)
	w.WriteHeader(http.StatusAccepted)
	return true, err
}

// A server's incarnation ended while it answered a client. The client was told that there is no leader, though another server had the
// runner by then; only requests that servers send on were sent elsewhere.
func TestWhatMovedMeanwhileIsAskedForElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := []string{}
		try := func(relay *movedRelay, where Where, body string, fails int) int {
			seen = nil
			cfg := testConfig()
			cfg.Relay = relay
			h := Handler(cfg, testFace{{Pattern: "POST /x", Where: where, Handle: func(w http.ResponseWriter, r *http.Request) error {
				got, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				seen = append(seen, string(got))
				if len(seen) <= fails {
					return drover.Errorf(drover.NotLeader, "No cluster leader")
				}
				w.WriteHeader(http.StatusCreated)
				return nil
			}}})
			return do(t, h, http.MethodPost, "/x", body).Code
		}
		key := func(*http.Request) (string, error) { return "k", nil }
		relay := &movedRelay{here: 2}
		require.Equal(t, http.StatusAccepted, try(relay, Runner(key), "text", 100))
		require.Equal(t, []string{"text", "text"}, seen)
		require.Equal(t, "text", relay.got)

		require.Equal(t, http.StatusCreated, try(&movedRelay{here: 100}, Claim(key), "text", 3), "it came back")
		require.Equal(t, []string{"text", "text", "text", "text"}, seen)

		begin := time.Now()
		require.Equal(t, http.StatusServiceUnavailable, try(&movedRelay{here: 1000}, Execution(key), "text", 1000))
		require.InDelta(t, movesFor, time.Since(begin), float64(movesEvery))
		long := strings.Repeat("x", replay.Most+1)
		require.Equal(t, http.StatusServiceUnavailable, try(&movedRelay{here: 1}, Runner(key), long, 1), "it cannot be read again")
		require.Equal(t, []string{long}, seen)
		require.Equal(t, http.StatusServiceUnavailable, try(&movedRelay{here: 1}, Leader, "text", 1), "what does not move is not asked for again")
	})
}
