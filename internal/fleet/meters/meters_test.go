package meters

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/telemetry"
)

// shown returns the lines of the metrics that contain the text.
func shown(t *testing.T, m *telemetry.Metrics, text string) (lines []string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/metrics?format=prometheus", nil)
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") && strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestBootsAreCountedByTheirEnd(t *testing.T) {
	t.Parallel()
	metrics := telemetry.NewMetrics(clock.Wall{})
	m := New(metrics, clock.Wall{})
	at := time.Now()
	for _, i := range []fleet.Instance{
		{Durable: fleet.Durable{State: fleet.InstanceRegistered}},
		{Durable: fleet.Durable{State: fleet.InstanceActive, StateAt: at, ReadyAt: at}},
		{Durable: fleet.Durable{State: fleet.InstanceActive, StateAt: at.Add(time.Second), ReadyAt: at}}, // it was drained, and is not any more
		{Durable: fleet.Durable{State: fleet.InstanceActive, StateAt: at, ReadyAt: at}, Adopted: true},
		{Durable: fleet.Durable{State: fleet.InstanceGone, CreatedAt: at, Why: "disappeared"}},
		{Durable: fleet.Durable{State: fleet.InstanceGone, CreatedAt: at, Why: "boot"}},
		{Durable: fleet.Durable{State: fleet.InstanceGone, CreatedAt: at, Why: "killed"}},
		{Durable: fleet.Durable{State: fleet.InstanceGone, Why: "boot"}}, // it was never made
		{Durable: fleet.Durable{State: fleet.InstanceGone, CreatedAt: at, ReadyAt: at, Why: "terminated"}},
	} {
		i.Pool = "p"
		m.StateChanged(&i, &fleet.InstanceRecord{Durable: fleet.Durable{State: fleet.InstanceDestroying, StateAt: at}})
	}
	require.ElementsMatch(t, []string{
		`drover_fleet_boot_outcomes{outcome="success"} 1`, `drover_fleet_boot_outcomes{outcome="disappeared"} 1`,
		`drover_fleet_boot_outcomes{outcome="failure"} 1`, `drover_fleet_boot_outcomes{outcome="aborted"} 1`,
	}, shown(t, metrics, "boot_outcomes"))
	require.Equal(t, []string{`drover_fleet_disappeared{pool="p"} 2`}, shown(t, metrics, "disappeared{"))
	require.Equal(t, []string{`drover_fleet_time_to_gone_count{pool="p"} 5`}, shown(t, metrics, "time_to_gone_count"))
}

// limited is a cloud that says that it is asked too often.
type limited struct{ provider.Provider }

func (limited) Create(context.Context, provider.Request) ([]provider.Machine, error) {
	return nil, &provider.Error{Kind: provider.RateLimited, Message: "slower"}
}
func (limited) List(context.Context, string) ([]provider.Machine, string, error) { return nil, "", nil }
func (limited) Destroy(context.Context, string) error                            { return nil }
func (limited) SetTags(context.Context, string, map[string]string) error         { return nil }
func (limited) Capabilities() provider.Capabilities                              { return provider.Capabilities{} }

func TestCallsOfCloudsAreMeasured(t *testing.T) {
	t.Parallel()
	metrics := telemetry.NewMetrics(clock.Wall{})
	m := New(metrics, clock.Wall{})
	p := m.Watch("sky", limited{})
	_, err := p.Create(t.Context(), provider.Request{Offering: fleet.Offering{Zone: "a", Market: "spot"}})
	require.Equal(t, provider.RateLimited, provider.KindOf(err))
	_, _, err = p.List(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, p.Destroy(t.Context(), "m"))
	require.NoError(t, p.SetTags(t.Context(), "m", nil))
	require.Len(t, shown(t, metrics, "fleet_call_count"), 4)
	starts := shown(t, metrics, "fleet_starts")
	require.Len(t, starts, 1)
	require.Contains(t, starts[0], `outcome="`+string(provider.RateLimited)+`"`)
	require.Contains(t, m.limited, "sky")
	m.Placed(3, "cloud")
	m.Decided("sky", time.Millisecond)
	m.Acted(&fleet.Audit{Pool: "p", What: "create", Why: "demand"})
	require.Equal(t, []string{`drover_fleet_actions{pool="p",what="create",why="demand"} 1`}, shown(t, metrics, "fleet_actions"))
	require.Len(t, shown(t, metrics, "time_to_placed_count"), 1)
}

func TestSilenceOfMachines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New(telemetry.NewMetrics(clock.Wall{}), clock.Wall{})
		m.Heartbeat("n1")
		m.Heartbeat("stranger")
		time.Sleep(10 * time.Second)
		m.Heartbeat("n2")
		m.Heartbeat("n3")
		time.Sleep(5 * time.Second)
		got := map[string]float64{}
		emit := func(name string, v float64, _ ...string) { got[name] = v }
		pending := &drover.Allocation{ClientStatus: drover.AllocClientPending}
		running := &drover.Allocation{ClientStatus: drover.AllocClientRunning}
		m.NodeGauges(emit, []pool.Node{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}, func(string) iter.Seq[*drover.Allocation] {
			return slices.Values([]*drover.Allocation{pending, running})
		})
		require.Equal(t, map[string]float64{
			"drover.fleet.work_starting": 3, "drover.fleet.heartbeat_age_seconds_max": 15, "drover.fleet.heartbeat_age_seconds_median": 5,
		}, got)
		require.NotContains(t, m.heard, "stranger", "it is no machine of ours")
	})
}

func TestCategoriesThatPeopleCount(t *testing.T) {
	t.Parallel()
	for want, i := range map[string]fleet.Instance{
		"hold":    {Durable: fleet.Durable{Behavior: fleet.BehaviorHold, State: fleet.InstanceActive}},
		"booting": {Durable: fleet.Durable{State: fleet.InstanceBooting}},
		"busy":    {Durable: fleet.Durable{State: fleet.InstanceActive}, Work: 1},
		"idle":    {Durable: fleet.Durable{State: fleet.InstanceActive}},
	} {
		require.Equal(t, want, category(&i))
	}
}
