package logsink

import "github.com/drover-project/drover"

func dialSyslog(Syslog) (daemon, error) {
	return nil, drover.Errorf(drover.Invalid, "enable_syslog: there is no syslog on Windows: use log_file")
}
