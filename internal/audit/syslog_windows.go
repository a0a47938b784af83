package audit

import (
	"io"

	"github.com/drover-project/drover"
)

// Syslog configures a sink that is a syslog, which Windows does not have.
type Syslog struct{ Network, Address, Facility, Tag string }

func openSyslog(Syslog) (io.WriteCloser, error) {
	return nil, drover.Errorf(drover.Invalid, "type: there is no syslog on Windows: use file or http")
}
