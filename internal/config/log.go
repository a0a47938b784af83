package config

import (
	"cmp"
	"time"

	"github.com/drover-project/drover/internal/logsink"
	"github.com/drover-project/drover/internal/optional"
)

// Defaults of the log.
const (
	logRotateDuration = 24 * time.Hour
	syslogFacility    = "LOCAL0"
)

// LogSinks are the places of the log beside the output of the process, and its form. Its level is missing.
func (a *Agent) LogSinks() logsink.Config {
	out := logsink.Config{JSON: optional.Value(a.LogJSON), Source: optional.Value(a.LogLocation)}
	if a.LogFile != "" {
		out.File = &logsink.File{
			Path: a.LogFile, RotateBytes: a.LogRotateBytes, RotateAfter: Duration(a.LogRotateDuration, logRotateDuration),
			Keep: a.LogRotateMaxFiles,
		}
	}
	if optional.Value(a.Syslog) {
		out.Syslog = &logsink.Syslog{Facility: cmp.Or(a.SyslogFacility, syslogFacility)}
	}
	return out
}

// logProblems are those of the log.
func (a *Agent) logProblems(p *problems) {
	p.oneOf("log_level", a.LogLevel, false, "trace", "debug", "info", "warn", "error")
	p.check(a.LogRotateBytes >= 0, "log_rotate_bytes", "must not be negative, got %d", a.LogRotateBytes)
	p.check(a.LogRotateMaxFiles >= 0, "log_rotate_max_files", "must not be negative, got %d; 0 keeps all", a.LogRotateMaxFiles)
	_, err := logsink.Facility(cmp.Or(a.SyslogFacility, syslogFacility))
	p.check(err == nil, "syslog_facility", "%v", err)
}
