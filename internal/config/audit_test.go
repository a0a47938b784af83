package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheAuditOfNomadsConfiguration(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`audit {
  enabled = true
  sink "audit" {
    type               = "file"
    delivery_guarantee = "enforced"
    format             = "json"
    path               = "/var/log/audit.log"
    rotate_bytes       = 100
    rotate_duration    = "24h"
    rotate_max_files   = 10
    mode               = "0640"
  }
  filter "reads" {
    type       = "HTTPEvent"
    endpoints  = ["/v1/agent/*"]
    stages     = ["OperationReceived"]
    operations = ["GET"]
  }
}`), "x.hcl")
	require.NoError(t, err)
	require.True(t, a.Audited())
	s := a.AuditSinks()[0]
	require.EqualValues(t, 0o640, s.FileMode())
	require.True(t, *s.Sync)
	a.Dev, a.Server = true, &Server{Enabled: new(true)}
	require.NoError(t, Merge(Default(), a).Validate())
}

func TestAnAuditThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"audit.sample_reads: must not be negative":                "sample_reads = -1",
		"audit.trust_request_id: \"10.0.0.1\" is no network":      "trust_request_id = [\"10.0.0.1\"]",
		"audit.sink.a.type: must be file, syslog or http":         "sink \"a\" {\ntype = \"kafka\"\n}",
		"audit.sink.a.delivery_guarantee: must be enforced":       "sink \"a\" {\ndelivery_guarantee = \"maybe\"\n}",
		"audit.sink.a.mode: must be octal":                        "sink \"a\" {\nmode = \"0400\"\n}",
		"audit.sink.a.rotate_duration: \"daily\" is no duration":  "sink \"a\" {\nrotate_duration = \"daily\"\n}",
		"audit.sink.a.address: must be the URL":                   "sink \"a\" {\ntype = \"http\"\n}",
		"audit.sink.a.network: nobody knows whether":              "sink \"a\" {\ntype = \"syslog\"\naddress = \"x:514\"\nnetwork = \"udp\"\n}",
		"audit.sink.b.path: another sink writes /x":               "sink \"a\" {\npath = \"/x\"\n}\nsink \"b\" {\npath = \"/x\"\n}",
		"audit.sink.a/b: a sink's name has letters":               "sink \"a/b\" {\n}",
		"audit.filter.f.stages: must be OperationReceived":        "filter \"f\" {\nstages = [\"Done\"]\n}",
		"audit.filter.f.endpoints: \"v1\" is no pattern of paths": "filter \"f\" {\nendpoints = [\"v1\"]\n}",
	} {
		a, err := Parse([]byte("audit {\n"+text+"\n}"), "x.hcl")
		require.NoError(t, err, text)
		a.Dev, a.Server = true, &Server{Enabled: new(true)}
		require.ErrorContains(t, Merge(Default(), a).Validate(), want)
	}
}
