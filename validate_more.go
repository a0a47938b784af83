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

func (g *TaskGroup) validateDisconnect(v *validation, at string) {
	d := g.Disconnect
	if d == nil {
		return
	}
	at += ".Disconnect"
	v.check(d.LostAfter >= 0, at+".LostAfter", "must not be negative, got %v", d.LostAfter)
	v.check(d.StopOnClientAfter >= 0, at+".StopOnClientAfter", "must not be negative, got %v", d.StopOnClientAfter)
	v.check(d.LostAfter == 0 || d.StopOnClientAfter == 0, at, "LostAfter and StopOnClientAfter exclude each other")
	switch d.Reconcile {
	case ReconcileBestScore, ReconcileKeepOriginal, ReconcileKeepReplacement, ReconcileLongestRunning:
	default:
		v.addf(at+".Reconcile", "must be best_score, keep_original, keep_replacement or longest_running, got %q", d.Reconcile)
	}
	legacy := func(name string, old *time.Duration, now time.Duration) {
		v.check(old == nil || *old == now, at, "excludes %s", name)
	}
	legacy("StopAfterClientDisconnect", g.StopAfterClientDisconnect, d.StopOnClientAfter)
	legacy("MaxClientDisconnect", g.MaxClientDisconnect, d.LostAfter)
}

// validateRollOut refuses what only jobs that stay have: what ends by itself is neither rolled out nor moved.
func (g *TaskGroup) validateRollOut(v *validation, j *Job, at string) {
	stays := j.Type == JobTypeService || j.Type == JobTypeSystem
	v.check(stays || g.Update == nil, at+".Update", "only service and system jobs can have one, not %s", j.Type)
	v.check(j.Type == JobTypeService || g.Migrate == nil, at+".Migrate", "only service jobs can have one, not %s", j.Type)
}

func (g *TaskGroup) validateVolumes(v *validation, at string) {
	for name, r := range g.Volumes {
		where := fmt.Sprintf("%s.volume[%s]", at, name)
		if r == nil {
			v.addf(where, "must not be null")
			continue
		}
		v.check(r.Type == "host" || r.Type == "csi", where+".Type", "must be host, got %q", r.Type)
		v.check(r.Source != "", where+".Source", "must be set")
	}
}

func (g *TaskGroup) validateScaling(v *validation, at string) {
	s := g.Scaling
	if s == nil {
		return
	}
	at += ".Scaling"
	low, high := int64(0), int64(MaxGroupCount)
	if s.Min != nil {
		low = *s.Min
		v.check(low >= 0, at+".Min", "must not be negative, got %d", low)
	}
	if s.Max != nil {
		high = *s.Max
		v.check(high >= low, at+".Max", "must be at least Min (%d), got %d", low, high)
	}
	if n := int64(*g.Count); n < low || n > high {
		v.addf(at, "the group's Count %d is not from Min %d to Max %d", n, low, high)
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

func validateServices(v *validation, at string, g *TaskGroup, list []*Service) {
	labels := g.ports()
	known := func(port string) bool {
		_, err := strconv.Atoi(port)
		return port == "" || err == nil || labels[port] || strings.Contains(port, "${")
	}
	for i, s := range list {
		if s == nil {
			v.addf(fmt.Sprintf("%s.Services[%d]", at, i), "must not be null")
			continue
		}
		where := fmt.Sprintf("%s.service[%s]", at, nameOr(s.Name, i))
		v.check(s.Provider == "nomad" || s.Provider == "consul", where+".Provider", "must be nomad or consul, got %q", s.Provider)
		v.check(len(s.Name) <= 63 && !strings.ContainsAny(s.Name, " \x00/"), where+".Name", "must be usable in DNS, got %q", s.Name)
		v.check(known(s.PortLabel), where+".PortLabel", "the group has no port %q", s.PortLabel)
		for k, c := range s.Checks {
			validateCheck(v, fmt.Sprintf("%s.Checks[%d]", where, k), c, known)
		}
	}
}

// validateCheck looks at a check under the names of HCL and of JSON.
func validateCheck(v *validation, at string, c map[string]any, known func(string) bool) {
	text := func(names ...string) string {
		for _, n := range names {
			if s, ok := c[n].(string); ok {
				return s
			}
		}
		return ""
	}
	kind := text("type", "Type")
	v.check(slices.Contains([]string{"http", "tcp", "grpc", "script"}, kind), at+".Type", "must be http, tcp, grpc or script, got %q", kind)
	v.check(kind != "http" || text("path", "Path") != "", at+".Path", "must be set for http")
	port := text("port", "PortLabel")
	v.check(known(port), at+".PortLabel", "the group has no port %q", port)
}

func (t *Task) validateTemplate(v *validation, at string, m *Template) {
	if m.Perms != "" {
		_, err := strconv.ParseUint(m.Perms, 8, 12)
		v.check(err == nil, at+".Perms", "must be octal such as 0644, got %q", m.Perms)
	}
	v.check(m.Splay == nil || *m.Splay >= 0, at+".Splay", "must not be negative")
	v.check(m.ChangeMode != "script" || m.ChangeScript != nil && m.ChangeScript.Command != "", at+".ChangeScript.Command", "must be set for change_mode script")
	if w := m.Wait; w != nil && w.Min != nil && w.Max != nil {
		v.check(*w.Min <= *w.Max, at+".Wait", "Min %v is above Max %v", *w.Min, *w.Max)
	}
}

func (m *MigrateStrategy) validate(v *validation, at string) {
	if m == nil {
		return
	}
	v.check(*m.MaxParallel >= 0, at+".MaxParallel", "must not be negative, got %d", *m.MaxParallel)
	v.check(m.HealthCheck == "checks" || m.HealthCheck == "task_states", at+".HealthCheck", "must be checks or task_states, got %q", m.HealthCheck)
	v.check(*m.MinHealthyTime >= 0, at+".MinHealthyTime", "must not be negative")
	v.check(*m.MinHealthyTime < m.HealthyDeadline, at+".MinHealthyTime", "must be less than HealthyDeadline (%v), got %v", m.HealthyDeadline, *m.MinHealthyTime)
}
