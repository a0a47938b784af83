//go:build !windows

package logsink

import (
	"log/slog"
	"log/syslog"

	"github.com/drover-project/drover"
)

// writer is a connection to the machine's syslog, which log/syslog makes anew where it broke.
type writer struct{ to *syslog.Writer }

// dialSyslog finds the machine's syslog. Errors: Invalid, naming the key.
func dialSyslog(cfg Syslog) (daemon, error) {
	facility, err := Facility(cfg.Facility)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "syslog_facility: %w", err)
	}
	network := ""
	if cfg.Address != "" {
		network = "unixgram"
	}
	to, err := syslog.Dial(network, cfg.Address, syslog.Priority(facility<<3)|syslog.LOG_INFO, tag)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "enable_syslog: no syslog answers on this machine: %w; start one, or remove the key", err)
	}
	return &writer{to}, nil
}

// send implements daemon.
func (w *writer) send(level slog.Level, line string) error {
	switch {
	case level >= slog.LevelError:
		return w.to.Err(line)
	case level >= slog.LevelWarn:
		return w.to.Warning(line)
	case level >= slog.LevelInfo:
		return w.to.Info(line)
	}
	return w.to.Debug(line)
}

// close implements daemon.
func (w *writer) close() { _ = w.to.Close() } // nothing waits in it
