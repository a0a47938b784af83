//go:build !windows

package audit

import (
	"io"
	"log/syslog"
	"strings"

	"github.com/drover-project/drover"
)

// Syslog configures a sink that is a syslog.
type Syslog struct {
	Network, Address string // unix, tcp or udp; "" is the machine's own
	Facility         string // default AUTHPRIV
	Tag              string // default drover-audit
}

var facilities = map[string]syslog.Priority{
	"USER": syslog.LOG_USER, "DAEMON": syslog.LOG_DAEMON, "AUTH": syslog.LOG_AUTH, "AUTHPRIV": syslog.LOG_AUTHPRIV, "": syslog.LOG_AUTHPRIV,
	"LOCAL0": syslog.LOG_LOCAL0, "LOCAL1": syslog.LOG_LOCAL1, "LOCAL2": syslog.LOG_LOCAL2, "LOCAL3": syslog.LOG_LOCAL3,
	"LOCAL4": syslog.LOG_LOCAL4, "LOCAL5": syslog.LOG_LOCAL5, "LOCAL6": syslog.LOG_LOCAL6, "LOCAL7": syslog.LOG_LOCAL7,
}

// reconnecting dials when the first line comes, and again after an error.
type reconnecting struct {
	Syslog
	priority syslog.Priority
	to       *syslog.Writer
}

func openSyslog(cfg Syslog) (io.WriteCloser, error) {
	priority, ok := facilities[strings.ToUpper(cfg.Facility)]
	if !ok {
		return nil, drover.Errorf(drover.Invalid,
			"facility: there is none that is called %q: AUTH, AUTHPRIV, DAEMON, USER, LOCAL0 to LOCAL7", cfg.Facility)
	}
	if cfg.Tag == "" {
		cfg.Tag = "drover-audit"
	}
	return &reconnecting{Syslog: cfg, priority: priority | syslog.LOG_INFO}, nil
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
