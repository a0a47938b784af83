package config

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/statsd"
)

// Telemetry is the configuration of metrics.
type Telemetry struct {
	// how often usage is sampled while somebody reads it, and metrics are sent; duration
	CollectionInterval string `hcl:"collection_interval,optional"`
	// export metrics of each allocation; default false
	AllocMetrics *bool  `hcl:"publish_allocation_metrics,optional"`
	NodeMetrics  *bool  `hcl:"publish_node_metrics,optional"` // export metrics of the node; default false
	Statsd       string `hcl:"statsd_address,optional"`       // host:port that metrics are sent to, as statsd takes them by UDP
	Statsite     string `hcl:"statsite_address,optional"`     // host:port that metrics are sent to, as statsite takes them by TCP
	// host:port of Datadog's agent that metrics are sent to by UDP, with labels as tags
	Datadog     string   `hcl:"datadog_address,optional"`
	DatadogTags []string `hcl:"datadog_tags,optional"` // tags of all that Datadog gets: "env:prod"
	// send gauges without the name of the host, which is the second part of theirs and a tag for Datadog; default false
	NoHostname *bool `hcl:"disable_hostname,optional"`
	// send the agent's name in place of the host's; default false
	UseNodeName *bool `hcl:"use_node_name,optional"`
	// metrics that are told and sent, "+nomad.client", or not, "-nomad.runtime": the longest that fits counts
	PrefixFilter []string `hcl:"prefix_filter,optional"`
	// what holds for metrics that prefix_filter does not name; default true
	FilterDefault *bool `hcl:"filter_default,optional"`
	// always true: /v1/metrics?format=prometheus answers; false has no effect
	Prometheus *bool    `hcl:"prometheus_metrics,optional"`
	Rest       hcl.Body `hcl:",remain" json:"-"`
}

// Pushed is who gets metrics without asking. host is the machine's name.
func (a *Agent) Pushed(host string) statsd.Config {
	t := a.Telemetry
	if optional.Value(t.UseNodeName) {
		host = a.AgentName()
	}
	if optional.Value(t.NoHostname) {
		host = ""
	}
	return statsd.Config{
		Statsd: t.Statsd, Statsite: t.Statsite, Datadog: t.Datadog, Tags: t.DatadogTags, Host: host,
		Interval: max(Duration(t.CollectionInterval, time.Second), leastInterval),
	}
}

// leastInterval is the least time between two times that metrics are sent.
const leastInterval = 100 * time.Millisecond

// problems are those of metrics.
func (t *Telemetry) problems(p *problems) {
	for key, address := range map[string]string{
		"statsd_address": t.Statsd, "statsite_address": t.Statsite, "datadog_address": t.Datadog,
	} {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("udp", port)
		}
		p.check(address == "" || err == nil && port != "", "telemetry."+key, "must be host:port such as 127.0.0.1:8125, got %q", address)
	}
	for _, rule := range t.PrefixFilter {
		p.check(len(rule) > 1 && (rule[0] == '+' || rule[0] == '-'), "telemetry.prefix_filter",
			`%s must be + or - and the beginning of names, such as "-nomad.runtime"`, fmt.Sprintf("%q", rule))
	}
	p.check(len(t.DatadogTags) == 0 || t.Datadog != "", "telemetry.datadog_tags", "nobody gets them without datadog_address")
	for _, tag := range t.DatadogTags {
		p.check(tag != "" && !strings.ContainsAny(tag, ",|\n"), "telemetry.datadog_tags", "%q is no tag such as env:prod", tag)
	}
}
