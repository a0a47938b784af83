//go:build !windows

package audit

import (
	"cmp"
	"io"
	"log/syslog"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/logsink"
)

// Syslog configures a sink that is a syslog.
type Syslog struct {
	Network, Address string // unix, tcp or udp; "" is the machine's own
	Facility         string // default AUTHPRIV
	Tag              string // default drover-audit
}

// reconnecting dials when the first line comes, and again after an error.
type reconnecting struct {
	Syslog
	priority syslog.Priority
	to       *syslog.Writer
}

func openSyslog(cfg Syslog) (io.WriteCloser, error) {
	number, err := logsink.Facility(cmp.Or(cfg.Facility, "AUTHPRIV"))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "facility: %w", err)
	}
	if cfg.Tag == "" {
		cfg.Tag = "drover-audit"
	}
	return &reconnecting{Syslog: cfg, priority: syslog.Priority(number<<3) | syslog.LOG_INFO}, nil
}

// Write sends one line.
func (r *reconnecting) Write(line []byte) (int, error) {
	if r.to == nil {
		to, err := syslog.Dial(r.Network, r.Address, r.priority, r.Tag)
		if err != nil {
			return 0, err
		}
		r.to = to
	}
	n, err := r.to.Write(line)
	if err != nil {
		_ = r.Close() // the error is the one before
	}
	return n, err
}

// Close closes the connection, if there is one.
func (r *reconnecting) Close() error {
	if r.to == nil {
		return nil
	}
	err := r.to.Close()
	r.to = nil
	return err
}
