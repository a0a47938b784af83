package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const contrib = "../../contrib"

// metricName finds the names of our metrics, and of the process's, in an expression.
var metricName = regexp.MustCompile(`\b(?:drover|nomad|process|go)_[a-zA-Z0-9_]+`)

// TestAlertsAndDashboardNameMetricsThatAreExported asks a server with a node, a machine of its fleet and a job for each
// metric that the files for Prometheus and Grafana name.
func TestAlertsAndDashboardNameMetricsThatAreExported(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() { endMachines(t, data) })
	fleet := strings.Replace(fleetBlock("min = 1\nbudget {\n per_day = 20\n}"), `type = "loopback"`,
		fmt.Sprintf("type = \"loopback\"\n    dir  = %q", filepath.Join(data, "fleet", "local")), 1) // which several servers must share
	a := start(t, append([]string{"-client", "-serf-port", freePort(t), "-server", "-rpc-port", freePort(t)}, config(t, data, fleet)...)...)
	_, _, err := a.nomad().Jobs().Register(rawJob("metrics", "service", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	named := namedMetrics(t)
	require.Contains(t, named, "drover_http_request")
	var missing []string
	eventually(t, "all metrics that alerts and dashboard name", func() (bool, string) {
		exported := exportedMetrics(t, a.Addr)
		missing = slices.DeleteFunc(slices.Clone(named), func(name string) bool { return exported[name] })
		return len(missing) == 0, strings.Join(missing, ", ")
	})
	_, _, err = a.nomad().Jobs().Deregister("metrics", true, nil)
	require.NoError(t, err)
	nothingRuns(t, a.nomad()) // tasks outlive their agent
}

func namedMetrics(t *testing.T) (names []string) {
	t.Helper()
	alerts, err := os.ReadFile(filepath.Join(contrib, "prometheus/alerts.yml"))
	require.NoError(t, err)
	text := ""
	for _, line := range strings.Split(string(alerts), "\n") {
		if expr, ok := strings.CutPrefix(strings.TrimSpace(line), "expr: "); ok {
			text += expr + "\n"
		}
	}
	dashboard, err := os.ReadFile(filepath.Join(contrib, "grafana/drover.json"))
	require.NoError(t, err)
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(dashboard, &d))
	require.NotEmpty(t, d.Panels)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			text += target.Expr + "\n"
		}
	}
	for _, name := range metricName.FindAllString(text, -1) {
		for _, part := range []string{"_count", "_sum", "_bucket"} {
			name = strings.TrimSuffix(name, part)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func exportedMetrics(t *testing.T, addr string) map[string]bool {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/v1/metrics?format=prometheus")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	out := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			out[name] = true
		}
	}
	return out
}
