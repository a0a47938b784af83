package fleet

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// TestSimulations: what makes no sense or is too much is refused by its field, there is one at a time, and each has an end.
func TestSimulations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running := make(chan struct{}, 1)
		f := &Face{Clock: clock.Wall{}, Simulate: func(ctx context.Context, ask fleet.Simulation) ([]fleet.Simulated, error) {
			if ask.Seed == 7 { // it is long
				running <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return []fleet.Simulated{{Rules: "drover", Cost: 3}}, nil
		}}
		h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}}, f)
		ask := func(body string) (int, string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/fleet/simulate", strings.NewReader(body))
			h.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		for body, want := range map[string]string{
			`{}`: "Policy: missing", `{"Policy":{},"PerHour":-1}`: "must not be negative", `{"Policy":{},"Faults":2}`: "Faults",
			`{"Policy":{},"PerHour":1e9}`: "PerHour and Length", `{"Policy":{},"Workload":"burst","PerHour":300000}`: "drover fleet simulate",
			`{"Policy":{},"Moon":1}`: "Moon",
		} {
			status, text := ask(body)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, text, want)
		}
		status, text := ask(`{"Policy":{"Name":"p"}}`)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, text, `"Cost":3`)
		begun := time.Now()
		go func() { // ends with the simulation
			<-running
			status, _ := ask(`{"Policy":{"Name":"p"}}`)
			if status != http.StatusTooManyRequests {
				t.Errorf("a second one is answered with %d", status)
			}
		}()
		status, text = ask(`{"Policy":{"Name":"p"},"Seed":7}`)
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, text, "takes longer than 10s")
		require.Equal(t, simulateWithin, time.Since(begun))
		synctest.Wait()
		f.Simulate = nil
		status, _ = ask(`{"Policy":{"Name":"p"}}`)
		require.Equal(t, http.StatusNotImplemented, status)
	})
}
