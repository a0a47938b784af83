package servicecheck

import (
	"time"

	"github.com/drover-project/drover/service"
)

// Check is how a service is checked on its node.
type Check struct {
	Name                   string
	Type                   string // http, tcp, grpc or script
	Command                string
	Args                   []string
	Path                   string
	Protocol               string // of http: http (default) or https
	PortLabel              string // default the service's
	Expose                 bool
	AddressMode            string // default host
	Advertise              string
	Interval               time.Duration
	Timeout                time.Duration
	InitialStatus          string
	Notes                  string
	TLSServerName          string
	TLSSkipVerify          bool
	Header                 map[string][]string
	Method                 string // of http; default GET
	CheckRestart           *service.CheckRestart
	GRPCService            string
	GRPCUseTLS             bool
	TaskName               string
	SuccessBeforePassing   int
	FailuresBeforeCritical int
	FailuresBeforeWarning  int
	Body                   string
	OnUpdate               string // default the service's
}
