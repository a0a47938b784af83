package servicecheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/service"
)

// each calls f for each service of a job, with its path; t is nil for those of a group.
func each(j *drover.Job, f func(at string, g *drover.TaskGroup, t *drover.Task, s *service.Service)) {
	list := func(at string, g *drover.TaskGroup, t *drover.Task, services []*service.Service) {
		for _, s := range services {
			if s != nil {
				f(fmt.Sprintf("%s.service[%s]", at, s.Name), g, t, s)
			}
		}
	}
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		at := fmt.Sprintf("job.group[%s]", g.Name)
		list(at, g, nil, g.Services)
		for _, t := range g.Tasks {
			if t != nil {
				list(fmt.Sprintf("%s.task[%s]", at, t.Name), g, t, t.Services)
			}
		}
	}
}

// Canonicalize fills in the defaults of the checks of a job that is canonical otherwise, and stores each under the names of the
// API. It is idempotent.
func Canonicalize(j *drover.Job) {
	each(j, func(_ string, _ *drover.TaskGroup, _ *drover.Task, s *service.Service) {
		for i, m := range s.Checks {
			if c, err := read(m); err == nil {
				c.canonicalize(s)
				s.Checks[i] = c.Map()
			}
		}
		s.CheckRestart = nil
	})
}

// canonicalize fills in what a check has from its service.
func (c *Check) canonicalize(s *service.Service) {
	optional.Default(&c.OnUpdate, s.OnUpdate)
	if own := s.CheckRestart; own != nil {
		merged := *own
		if r := c.CheckRestart; r != nil {
			optional.Override(&merged.Limit, r.Limit)
			optional.Override(&merged.Grace, r.Grace)
			merged.IgnoreWarnings = merged.IgnoreWarnings || r.IgnoreWarnings
		}
		c.CheckRestart = &merged
	}
	if c.CheckRestart != nil {
		optional.DefaultPointer(&c.CheckRestart.Grace, time.Second)
	}
}

// Faults returns what is wrong with the checks of a job, joined, each with its path; nil if nothing is.
func Faults(j *drover.Job) error {
	v := &validation.Report{}
	each(j, func(at string, g *drover.TaskGroup, t *drover.Task, s *service.Service) {
		for i, m := range s.Checks {
			at := fmt.Sprintf("%s.Checks[%d]", at, i)
			if c, err := read(m); err != nil {
				v.Addf(at, "%v", err)
			} else {
				c.validate(v, at, g)
				c.validateScript(v, at, t != nil || s.TaskName != "")
			}
		}
	})
	return v.Err()
}

var (
	checkTypes = []string{"http", "tcp", "grpc", "script"}
	onUpdates  = []string{service.OnUpdateRequireHealthy, service.OnUpdateIgnoreWarnings, service.OnUpdateIgnore}
)

// validate looks at a check.
func (c *Check) validate(v *validation.Report, at string, g *drover.TaskGroup) {
	v.Check(slices.Contains(checkTypes, c.Type), at+".Type", "must be http, tcp, grpc or script, got %q", c.Type)
	v.Check(c.Type != "http" || c.Path != "", at+".Path", "must be set for http")
	v.Check(g.KnowsPort(c.PortLabel), at+".PortLabel", "the group has no port %q", c.PortLabel)
	v.Check(c.Protocol == "" || c.Protocol == "http" || c.Protocol == "https", at+".Protocol", "must be http or https, got %q", c.Protocol)
	v.Check(c.AddressMode == "" || slices.Contains(service.AddressModes(), c.AddressMode), at+".AddressMode", "must be %s, got %q",
		strings.Join(service.AddressModes(), ", "), c.AddressMode)
	v.Check(c.Interval == 0 || c.Interval >= time.Second, at+".Interval", "must be at least 1s, got %v", c.Interval)
	v.Check(c.Timeout == 0 || c.Timeout >= time.Second, at+".Timeout", "must be at least 1s, got %v", c.Timeout)
	v.Check(c.TaskName == "" || strings.Contains(c.TaskName, "${") || g.Task(c.TaskName) != nil, at+".TaskName", "the group has no task %q",
		c.TaskName)
	v.Check(c.OnUpdate == "" || slices.Contains(onUpdates, c.OnUpdate), at+".OnUpdate", "must be %s, got %q",
		strings.Join(onUpdates, ", "), c.OnUpdate)
	v.Check(c.Type == "grpc" || c.GRPCService == "" && !c.GRPCUseTLS, at+".Type", "must be grpc with GRPCService or GRPCUseTLS, got %q",
		c.Type)
	if r := c.CheckRestart; r != nil {
		v.Check(r.Limit >= 0, at+".CheckRestart.Limit", "must not be negative, got %d", r.Limit)
		v.Check(r.Grace == nil || *r.Grace >= 0, at+".CheckRestart.Grace", "must not be negative")
	}
}

// validateScript looks at what a script needs: a command, and a task to run in, which inTask says that its service has.
func (c *Check) validateScript(v *validation.Report, at string, inTask bool) {
	if c.Type != "script" {
		v.Check(c.Command == "" && len(c.Args) == 0, at+".Type", "must be script with Command or Args, got %q", c.Type)
		return
	}
	v.Check(c.Command != "", at+".Command", "must be set for script")
	v.Check(inTask || c.TaskName != "", at+".TaskName", "must name the task that the script runs in: the service is the group's")
}
