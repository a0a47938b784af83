package config

import (
	"testing"

	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/config/pages"
)

// Keys of Nomad's that tune what few change.
func TestTuning(t *testing.T) {
	t.Parallel()
	server := func(s Server) *Agent { return &Agent{Server: &s} }
	node := func(c Client) *Agent { c.Enabled = new(true); return &Agent{Client: &c} }
	waits := func(wait *Wait, bounds *Bounds) *Agent {
		return node(Client{Template: &Template{Wait: wait, Bounds: bounds}})
	}
	fetch := func(a Artifact) *Agent { return node(Client{Artifact: &a}) }
	tracks := func(on bool, threshold int, window string) *Agent {
		return server(Server{RejectionTracker: &RejectionTracker{Enabled: &on, Threshold: threshold, Window: window}})
	}
	policy := func(list ...string) *Agent {
		return &Agent{UI: &pages.UI{Policy: &pages.ContentPolicy{Ancestors: list}}}
	}
	label := func(l pages.Label) *Agent { return &Agent{UI: &pages.UI{Label: &l}} }
	refuses(t, map[string]refusal{
		"too low a priority":     {server(Server{JobMaxPriority: 99}), "server.job_max_priority: must be from 100 to 32766, got 99"},
		"too high a priority":    {server(Server{JobMaxPriority: 32_767}), "server.job_max_priority: "},
		"the highest priority":   {server(Server{JobMaxPriority: 32_766, JobDefaultPriority: 32_765}), ""},
		"an unusual priority":    {server(Server{JobDefaultPriority: 100}), "server.job_default_priority: must be from 1 to below"},
		"a negative priority":    {server(Server{JobDefaultPriority: -1}), "server.job_default_priority: "},
		"a negative version":     {server(Server{JobTrackedVersions: -1}), "server.job_tracked_versions: must be from 1 to"},
		"a negative buffer":      {server(Server{EventBufferSize: -1}), "server.event_buffer_size: must not be negative"},
		"no scheduler":           {server(Server{EnabledSchedulers: []string{"daemon"}}), "server.enabled_schedulers: must be of service"},
		"all schedulers":         {server(Server{EnabledSchedulers: []string{"service", "batch", "system", "sysbatch", "_core"}}), ""},
		"too patient":            {server(Server{RaftMultiplier: 11}), "server.raft_multiplier: must be from 1 to 10, got 11"},
		"an old raft":            {server(Server{RaftProtocol: 2}), "server.raft_protocol: only 3 can be had, got 2"},
		"raft":                   {server(Server{RaftMultiplier: 10, RaftProtocol: 3, RaftSnapshotInterval: "5ms"}), ""},
		"snapshots all the time": {server(Server{RaftSnapshotInterval: "1ms"}), "server.raft_snapshot_interval: must be at least 5ms"},
		"a negative threshold":   {server(Server{RaftSnapshotThreshold: -1}), "server.raft_snapshot_threshold: "},
		"a negative trail":       {server(Server{RaftTrailingLogs: -1}), "server.raft_trailing_logs: "},
		"no cores":               {node(Client{ReservableCores: "0-"}), "client.reservable_cores: must be cores such as 0,2-3"},
		"no reserved cores":      {node(Client{Reserved: &Reserved{Cores: "one"}}), "client.reserved.cores: must be cores"},
		"some cores":             {node(Client{ReservableCores: "0-7", Reserved: &Reserved{Cores: "0,2"}}), ""},
		"no family":              {node(Client{AddressFamily: "inet"}), "client.preferred_address_family: must be ipv4 or ipv6"},
		"a wait that is none":    {waits(&Wait{Min: "soon"}, nil), `client.template.wait.min: "soon" is no duration`},
		"a wait the wrong way":   {waits(&Wait{Min: "2s", Max: "1s"}, nil), "client.template.wait: min must not be above"},
		"bounds the wrong way":   {waits(nil, &Bounds{Min: "2s", Max: "1s"}), "client.template.wait_bounds: min must"},
		"somebody's buckets":     {fetch(Artifact{CloudBuckets: []string{"a"}}), "client.artifact.cloud_buckets: buckets are asked"},
		"no bucket":              {fetch(Artifact{CloudCredentials: new(true), CloudBuckets: []string{}}), "cloud_buckets: names no bucket"},
		"a pattern that is none": {fetch(Artifact{CloudCredentials: new(true), CloudBuckets: []string{"[a"}}), "is no pattern"},
		"buckets":                {fetch(Artifact{CloudCredentials: new(true), CloudBuckets: []string{"team-*"}}), ""},
		"a cloud that is none":   {node(Client{Fingerprints: []*clouds.Fingerprint{{Name: "env_moon"}}}), "client.fingerprint.env_moon: "},
		"cpu is never left out":  {node(Client{Options: map[string]string{"fingerprint.denylist": "cpu"}}), "client.options: "},
		"rejections":             {tracks(true, 10, "1m"), ""},
		"a negative number":      {tracks(true, -1, ""), "server.plan_rejection_tracker.node_threshold: must be from 1 to"},
		"no window":              {tracks(true, 10, "0s"), "server.plan_rejection_tracker.node_window: must be above 0s"},
		"a window that is none":  {tracks(false, 10, "soon"), `server.plan_rejection_tracker.node_window: "soon" is no duration`},
		"tokens for ever":        {server(Server{TokenGC: "never"}), `server.acl_token_gc_threshold: "never" is no duration`},
		"tokens for no time":     {server(Server{TokenGC: "0s"}), `server.acl_token_gc_threshold: must be above 0s, got "0s"`},
		"tokens for a minute":    {server(Server{TokenGC: "1m"}), ""},
		"a label":                {label(pages.Label{Text: "staging", Background: "#b00020", Color: "white"}), ""},
		"an empty label":         {label(pages.Label{}), "ui.label.text: must have from 1 to 60 bytes, got 0"},
		"a colour that is none":  {label(pages.Label{Text: "a", Color: "red;x"}), "ui.label.text_color: must be a colour"},
		"colours of functions":   {label(pages.Label{Text: "a", Background: "url(x)"}), "ui.label.background_color: must be a colour"},
		"retries":                {node(Client{Template: &Template{Retry: &Retry{Attempts: 12, Backoff: "250ms", Max: "1m"}}}), ""},
		"retries the wrong way":  {node(Client{Template: &Template{Retry: &Retry{Backoff: "2s", Max: "1s"}}}), "client.template.nomad_retry: "},
		"retries of no time":     {node(Client{Template: &Template{Retry: &Retry{Max: "x"}}}), `client.template.nomad_retry.max_backoff: "x" is`},
		"a wait at servers":      {node(Client{Template: &Template{BlockWait: "60s"}}), ""},
		"no such wait":           {node(Client{Template: &Template{BlockWait: "x"}}), `client.template.block_query_wait_time: "x" is`},
		"sources":                {policy("'self'", "https://example.org:8443/", "data:", "*.example.org"), ""},
		"another directive":      {policy("a; script-src *"), "ui.content_security_policy.frame_ancestors: must be sources such as"},
		"another policy":         {policy("a,b"), "ui.content_security_policy.frame_ancestors: must be"},
		"an empty source":        {policy(""), "ui.content_security_policy.frame_ancestors: must be"},
		"negative retries":       {node(Client{Template: &Template{Retry: &Retry{Attempts: -1}}}), "client.template.nomad_retry.attempts: must"},
		"waits":                  {waits(&Wait{Min: "2s"}, &Bounds{Max: "1m"}), ""},
	})
}
