package drover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxAmount bounds every amount that a job can ask for, so that sums of them fit.
const maxAmount = 1<<31 - 1

func (g *TaskGroup) validateDisconnect(v *report, at string) {
	d := g.Disconnect
	if d == nil {
		return
	}
	at += ".Disconnect"
	v.Check(d.LostAfter >= 0, at+".LostAfter", "must not be negative, got %v", d.LostAfter)
	v.Check(d.StopOnClientAfter >= 0, at+".StopOnClientAfter", "must not be negative, got %v", d.StopOnClientAfter)
	v.Check(d.LostAfter == 0 || d.StopOnClientAfter == 0, at, "LostAfter and StopOnClientAfter exclude each other")
	switch d.Reconcile {
	case ReconcileBestScore, ReconcileKeepOriginal, ReconcileKeepReplacement, ReconcileLongestRunning:
	default:
		v.Addf(at+".Reconcile", "must be best_score, keep_original, keep_replacement or longest_running, got %q", d.Reconcile)
	}
	legacy := func(name string, old *time.Duration, now time.Duration) {
		v.Check(old == nil || *old == now, at, "excludes %s", name)
	}
	legacy("StopAfterClientDisconnect", g.StopAfterClientDisconnect, d.StopOnClientAfter)
	legacy("MaxClientDisconnect", g.MaxClientDisconnect, d.LostAfter)
}

// validateRollOut refuses what only jobs that stay have: what ends by itself is neither rolled out nor moved.
func (g *TaskGroup) validateRollOut(v *report, j *Job, at string) {
	stays := j.Type == JobTypeService || j.Type == JobTypeSystem
	v.Check(stays || g.Update == nil, at+".Update", "only service and system jobs can have one, not %s", j.Type)
	v.Check(j.Type == JobTypeService || g.Migrate == nil, at+".Migrate", "only service jobs can have one, not %s", j.Type)
}

func (g *TaskGroup) validateVolumes(v *report, at string) {
	for name, r := range g.Volumes {
		where := fmt.Sprintf("%s.volume[%s]", at, name)
		if r == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(r.Type == "host" || r.Type == "csi", where+".Type", "must be host, got %q", r.Type)
		v.Check(r.Source != "", where+".Source", "must be set")
	}
}

func (g *TaskGroup) validateScaling(v *report, at string) {
	s := g.Scaling
	if s == nil {
		return
	}
	at += ".Scaling"
	low, high := int64(0), int64(MaxGroupCount)
	if s.Min != nil {
		low = *s.Min
		v.Check(low >= 0, at+".Min", "must not be negative, got %d", low)
	}
	if s.Max != nil {
		high = *s.Max
		v.Check(high >= low, at+".Max", "must be at least Min (%d), got %d", low, high)
	}
	if n := int64(*g.Count); n < low || n > high {
		v.Addf(at, "the group's Count %d is not from Min %d to Max %d", n, low, high)
	}
}

// ports returns the labels of all ports of the group and its tasks.
func (g *TaskGroup) ports() map[string]bool {
	labels := map[string]bool{}
	add := func(networks []*NetworkResource) {
		for _, n := range networks {
			if n == nil {
				continue
			}
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				labels[p.Label] = true
			}
		}
	}
	add(g.Networks)
	for _, t := range g.Tasks {
		if t != nil && t.Resources != nil {
			add(t.Resources.Networks)
		}
	}
	return labels
}

func validateServices(v *report, at string, g *TaskGroup, list []*Service) {
	labels := g.ports()
	known := func(port string) bool {
		_, err := strconv.Atoi(port)
		return port == "" || err == nil || labels[port] || strings.Contains(port, "${")
	}
	for i, s := range list {
		if s == nil {
			v.Addf(fmt.Sprintf("%s.Services[%d]", at, i), "must not be null")
			continue
		}
		where := fmt.Sprintf("%s.service[%s]", at, nameOr(s.Name, i))
		v.Check(s.Provider == "nomad" || s.Provider == "consul", where+".Provider", "must be nomad or consul, got %q", s.Provider)
		v.Check(len(s.Name) <= 63 && !strings.ContainsAny(s.Name, " \x00/"), where+".Name", "must be usable in DNS, got %q", s.Name)
		v.Check(known(s.PortLabel), where+".PortLabel", "the group has no port %q", s.PortLabel)
		for k, c := range s.Checks {
			validateCheck(v, fmt.Sprintf("%s.Checks[%d]", where, k), c, known)
		}
	}
}

// validateCheck looks at a check under the names of HCL and of JSON.
func validateCheck(v *report, at string, c map[string]any, known func(string) bool) {
	text := func(names ...string) string {
		for _, n := range names {
			if s, ok := c[n].(string); ok {
				return s
			}
		}
		return ""
	}
	kind := text("type", "Type")
	v.Check(slices.Contains([]string{"http", "tcp", "grpc", "script"}, kind), at+".Type", "must be http, tcp, grpc or script, got %q", kind)
	v.Check(kind != "http" || text("path", "Path") != "", at+".Path", "must be set for http")
	port := text("port", "PortLabel")
	v.Check(known(port), at+".PortLabel", "the group has no port %q", port)
}

func (t *Task) validateTemplate(v *report, at string, m *Template) {
	if m.Perms != "" {
		_, err := strconv.ParseUint(m.Perms, 8, 12)
		v.Check(err == nil, at+".Perms", "must be octal such as 0644, got %q", m.Perms)
	}
	v.Check(m.Splay == nil || *m.Splay >= 0, at+".Splay", "must not be negative")
	v.Check(m.ChangeMode != "script" || m.ChangeScript != nil && m.ChangeScript.Command != "", at+".ChangeScript.Command", "must be set for change_mode script")
	if w := m.Wait; w != nil && w.Min != nil && w.Max != nil {
		v.Check(*w.Min <= *w.Max, at+".Wait", "Min %v is above Max %v", *w.Min, *w.Max)
	}
}

func (m *MigrateStrategy) validate(v *report, at string) {
	if m == nil {
		return
	}
	v.Check(*m.MaxParallel >= 0, at+".MaxParallel", "must not be negative, got %d", *m.MaxParallel)
	v.Check(m.HealthCheck == "checks" || m.HealthCheck == "task_states", at+".HealthCheck", "must be checks or task_states, got %q", m.HealthCheck)
	v.Check(*m.MinHealthyTime >= 0, at+".MinHealthyTime", "must not be negative")
	v.Check(*m.MinHealthyTime < m.HealthyDeadline, at+".MinHealthyTime", "must be less than HealthyDeadline (%v), got %v", m.HealthyDeadline, *m.MinHealthyTime)
}
