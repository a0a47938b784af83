package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/logsink"
)

func TestLogSinks(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`
log_file = "/var/log/nomad/"
log_rotate_bytes = 1048576
log_rotate_duration = "12h"
log_rotate_max_files = 3
log_include_location = true
log_json = true
enable_syslog = true
`), "a.hcl")
	require.NoError(t, err)
	require.Empty(t, a.Ignored)
	require.Equal(t, logsink.Config{
		JSON: true, Source: true, Syslog: &logsink.Syslog{Facility: "LOCAL0"},
		File: &logsink.File{Path: "/var/log/nomad/", RotateBytes: 1 << 20, RotateAfter: 12 * time.Hour, Keep: 3},
	}, a.LogSinks())
	require.Equal(t, true, Merge(Default(), a).Shown()["EnableSyslog"])

	require.Equal(t, logsink.Config{}, (&Agent{SyslogFacility: "DAEMON"}).LogSinks(), "nothing asks for a place")
	require.Equal(t, 24*time.Hour, (&Agent{LogFile: "x"}).LogSinks().File.RotateAfter)
}

func TestLogProblems(t *testing.T) {
	t.Parallel()
	a := Merge(Merge(Default(), DevMode()), &Agent{
		LogRotateBytes: -1, LogRotateDuration: "soon", LogRotateMaxFiles: -1, SyslogFacility: "LOCAL8",
	})
	err := a.Validate()
	for _, key := range []string{"log_rotate_bytes: ", "log_rotate_duration: ", "log_rotate_max_files: ", "syslog_facility: "} {
		require.ErrorContains(t, err, key)
	}
}
