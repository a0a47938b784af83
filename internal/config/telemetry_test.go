package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/statsd"
)

func TestPushed(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`
name = "n1"
telemetry {
  statsd_address = "127.0.0.1:8125"
  datadog_address = "dd:8125"
  datadog_tags = ["env:prod"]
  collection_interval = "10s"
  prometheus_metrics = true
}`), "a.hcl")
	require.NoError(t, err)
	require.Empty(t, a.Ignored)
	require.Equal(t, statsd.Config{
		Statsd: "127.0.0.1:8125", Datadog: "dd:8125", Tags: []string{"env:prod"}, Host: "machine", Interval: 10 * time.Second,
	}, a.Pushed("machine"))
	a.Telemetry.UseNodeName, a.Telemetry.CollectionInterval = new(true), "0s"
	require.Equal(t, "n1", a.Pushed("machine").Host)
	require.Equal(t, leastInterval, a.Pushed("machine").Interval)
	a.Telemetry.NoHostname = new(true)
	require.Empty(t, a.Pushed("machine").Host)
	require.False(t, Default().Pushed("machine").Enabled())
}

func TestTelemetryProblems(t *testing.T) {
	t.Parallel()
	a := Merge(Merge(Default(), DevMode()), &Agent{Telemetry: &Telemetry{
		Statsd: "host", Statsite: "host:none", PrefixFilter: []string{"nomad", "+"}, DatadogTags: []string{"a,b"},
	}})
	err := a.Validate()
	for _, text := range []string{
		"telemetry.statsd_address: must be host:port", "telemetry.statsite_address: ", `telemetry.prefix_filter: "nomad"`,
		`telemetry.prefix_filter: "+"`, "telemetry.datadog_tags: nobody", `telemetry.datadog_tags: "a,b"`,
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestRefusedKeysSayWhy(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a.hcl": `telemetry { circonus_api_token = "x" }`, "a.json": `{"telemetry": {"circonus_api_token": "x"}}`,
	} {
		_, err := Parse([]byte(text), name)
		require.ErrorContains(t, err, "telemetry.circonus_api_token is refused")
		require.ErrorContains(t, err, "nothing is sent to Circonus")
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	a, err := Parse([]byte(`telemetry { prometheus_metrics = false }`), "a.hcl")
	require.NoError(t, err)
	require.Equal(t, []string{"telemetry.prometheus_metrics"}, a.Ignored)
}
