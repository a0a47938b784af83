package allocrunner

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/checks"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/registration"
	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/internal/taskenv"
	"github.com/drover-project/drover/service"
)

// checking is what the runner knows of the checks of its services.
type checking struct {
	set     *checks.Set
	of      checkedState
	decides bool           // there is a check that a rollout waits for
	undone  bool           // one of those cannot be carried out now, as its task does not run
	passing time.Time      // since when all of those pass; zero = they do not
	wanted  map[string]int // checks of each service that is registered now, by its key
	failed  map[string]int // failures in a row that count for check_restart, by the check's id
}

// checkedState is what the present checks follow from.
type checkedState struct {
	alloc   *drover.Allocation
	running string // the tasks that run
	ended   string // the tasks that are dead
	address string // in the allocation's network
}

// Defaults of a check, which Nomad has none of: its jobs have to say them.
const (
	checkInterval = 10 * time.Second
	checkTimeout  = 3 * time.Second
)

// newChecking makes what checks need; there are none yet.
func (r *Runner) newChecking(p checks.Prober) {
	if p == nil {
		p = &checks.Network{}
	}
	r.checks.failed = map[string]int{}
	r.checks.set = checks.New(checks.Deps{Clock: r.clock, Prober: prober{p, r}, Changed: func(c *checks.Check, ok, warning bool) {
		r.send(func() { r.checked(c, ok, warning) })
	}})
}

// prober carries out scripts in the runner's tasks, and leaves other checks to another one.
type prober struct {
	checks.Prober
	runner *Runner
}

// Probe carries out a check. Any goroutine may call it.
func (p prober) Probe(ctx context.Context, c *checks.Check) (code int, output string, ok bool) {
	if c.Type != "script" {
		return p.Prober.Probe(ctx, c)
	}
	h, err := p.runner.Handle(c.Task)
	if err != nil {
		return 0, "nomad: " + err.Error(), false
	}
	return checks.Script(ctx, h, c)
}

// CheckStatuses returns what the checks found last. Any goroutine may call it.
func (r *Runner) CheckStatuses() map[string]service.CheckStatus { return r.checks.set.Statuses() }

// updateChecks has the services checked that run now.
func (r *Runner) updateChecks() {
	if !registration.Any(r.alloc) {
		return
	}
	now := checkedState{alloc: r.alloc, running: r.runningTasks(), ended: r.deadTasks()}
	if n := r.observedNetwork(); n != nil {
		now.address = n.Address + n.AddressIPv6
	}
	if now == r.checks.of {
		return
	}
	r.checks.of, r.checks.wanted, r.checks.undone = now, map[string]int{}, false
	list := r.dueChecks()
	ids := map[string]bool{}
	for _, c := range list {
		if !ids[c.ID()] {
			r.checks.wanted[c.Of]++
		}
		ids[c.ID()] = true
	}
	r.checks.decides = r.checks.undone || slices.ContainsFunc(list, (*checks.Check).Decides)
	r.checks.set.Update(r.life, list)
	if r.checks.undone || !r.checks.set.Passing() {
		r.checks.passing = time.Time{}
	}
}

// runningTasks names the tasks that run and are not being stopped.
func (r *Runner) runningTasks() string {
	if r.kill != nil || r.reviving {
		return ""
	}
	var names []string
	for _, t := range r.group.Tasks {
		if r.tasks[t.Name].Status().Phase == taskmachine.Running {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, "/")
}

// deadTasks names the tasks that are dead.
func (r *Runner) deadTasks() string {
	var names []string
	for _, t := range r.group.Tasks {
		if r.state(t.Name).State == drover.TaskStateDead {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, "/")
}

// dueChecks resolves the checks of the services that run. One that cannot be carried out now is wanted all the same.
func (r *Runner) dueChecks() (out []*checks.Check) {
	running := strings.Split(r.checks.of.running, "/")
	alloc := *r.alloc
	alloc.NetworkStatus = r.observedNetwork()
	node := r.cfg.Shared.Node()
	for _, s := range registration.Services(&alloc, node) {
		if s.Task != "" && !slices.Contains(running, s.Task) {
			// The service is not there, but comes back with its task: a rollout does not go on without it meanwhile.
			r.checks.undone = r.checks.undone || r.comes(s.Task) && slices.ContainsFunc(servicecheck.Of(s.Service), waitedFor)
			continue
		}
		for _, c := range servicecheck.Of(s.Service) {
			if r.checks.of.running == "" { // nothing is there to be checked
				r.unable(s, c)
				continue
			}
			if c.Type == "script" {
				if one := r.script(s, c); slices.Contains(running, one.Task) {
					out = append(out, one)
				} else {
					r.unable(s, c)
				}
				continue
			}
			port := s.Env.Replace(cmp.Or(c.PortLabel, s.PortLabel))
			host, number, known := registration.Address(cmp.Or(c.AddressMode, s.AddressMode), "", port, &alloc, node)
			if !known {
				r.unable(s, c)
				continue
			}
			out = append(out, r.check(s, c, net.JoinHostPort(host, strconv.Itoa(number))))
		}
	}
	return out
}

// waitedFor reports whether a rollout waits for the check.
func waitedFor(c *servicecheck.Check) bool { return c.OnUpdate != service.OnUpdateIgnore }

// comes reports whether the task is yet to run while the allocation is well.
func (r *Runner) comes(task string) bool {
	t := r.group.Task(task)
	return t != nil && stageOf(t) != stagePoststop && !slices.Contains(strings.Split(r.checks.of.ended, "/"), task)
}

// unable notes a check that cannot be carried out now.
func (r *Runner) unable(s registration.Service, c *servicecheck.Check) {
	r.checks.wanted[s.Key()]++
	r.checks.undone = r.checks.undone || waitedFor(c)
}

// script is a check in a task. Its command is interpolated as the task itself is.
func (r *Runner) script(s registration.Service, c *servicecheck.Check) *checks.Check {
	out := r.check(s, c, "")
	for _, t := range r.group.Tasks {
		if t.Name == out.Task {
			env := taskenv.Build(taskenv.Input{
				Node: r.cfg.Shared.Node(), Alloc: r.alloc, Group: r.group, Task: t, Dirs: hook.EnvDirs(r.dir.Task(t.Name)),
			})
			out.Command = env.Replace(c.Command)
			for _, a := range c.Args {
				out.Args = append(out.Args, env.Replace(a))
			}
		}
	}
	return out
}

// check is a check of a service at an address.
func (r *Runner) check(s registration.Service, c *servicecheck.Check, address string) *checks.Check {
	out := &checks.Check{
		Of: s.Key(), Service: s.Name, Task: cmp.Or(c.TaskName, s.Task, s.TaskName), Group: r.alloc.Name, Type: c.Type, Address: address,
		Name:   cmp.Or(s.Env.Replace(c.Name), fmt.Sprintf("service: %q check", s.Name)),
		Method: cmp.Or(c.Method, "GET"), Body: s.Env.Replace(c.Body), TLSServerName: c.TLSServerName, TLSSkipVerify: c.TLSSkipVerify,
		Interval: cmp.Or(c.Interval, checkInterval), Timeout: cmp.Or(c.Timeout, checkTimeout), OnUpdate: c.OnUpdate,
	}
	if c.CheckRestart != nil && c.CheckRestart.Limit > 0 {
		out.Restart = c.CheckRestart
	}
	switch c.Type {
	case "grpc":
		scheme := "http"
		if c.GRPCUseTLS {
			scheme = "https"
		}
		out.GRPCService = s.Env.Replace(c.GRPCService)
		out.URL = checks.GRPCURL(scheme, address)
	case "http":
		u, err := url.Parse(s.Env.Replace(c.Path))
		if err != nil { // the server answers that it has no such path
			u = &url.URL{Path: c.Path}
		}
		u.Scheme, u.Host = cmp.Or(c.Protocol, "http"), address
		out.URL, out.Header = u.String(), map[string][]string{}
		for name, values := range c.Header {
			for _, v := range values {
				out.Header[name] = append(out.Header[name], s.Env.Replace(v))
			}
		}
	}
	return out
}

// failingServices names the services of which not all checks pass, in order.
func (r *Runner) failingServices() (failing []string) {
	if len(r.checks.wanted) == 0 {
		return nil
	}
	passed := r.checks.set.Passed()
	for key, n := range r.checks.wanted {
		if passed[key] < n {
			failing = append(failing, key)
		}
	}
	slices.Sort(failing)
	return failing
}

// checked takes note of a result.
func (r *Runner) checked(c *checks.Check, ok, warning bool) {
	switch passing := r.checks.set.Passing(); {
	case !passing || r.checks.undone:
		r.checks.passing = time.Time{}
	case r.checks.passing.IsZero():
		r.checks.passing = r.clock.Now()
	}
	if ok || warning && c.Restart != nil && c.Restart.IgnoreWarnings {
		delete(r.checks.failed, c.ID())
		return
	}
	r.restartUnhealthy(c)
}

// restartUnhealthy restarts the task of a check that failed so often in a row, and counts that as its failure.
func (r *Runner) restartUnhealthy(c *checks.Check) {
	task := c.Task
	if task == "" {
		task = r.DefaultTask()
	}
	t := r.tasks[task]
	if c.Restart == nil || t == nil || t.Status().Phase != taskmachine.Running {
		return
	}
	grace := time.Second
	if c.Restart.Grace != nil {
		grace = *c.Restart.Grace
	}
	if r.clock.Now().Before(r.state(task).StartedAt.Add(grace)) {
		return
	}
	r.checks.failed[c.ID()]++
	if r.checks.failed[c.ID()] < c.Restart.Limit {
		return
	}
	delete(r.checks.failed, c.ID())
	reason := fmt.Sprintf("healthcheck: check %q unhealthy", c.Name)
	if said := firstLine(r.CheckStatuses()[c.ID()].Output); said != "" {
		reason += ": " + said
	}
	r.apply(task, taskmachine.Restart{Reason: reason, Failure: true})
}

// mostSaid is how much an event tells of what a check printed, in bytes.
const mostSaid = 200

// firstLine is what an event tells of what a check printed.
func firstLine(output string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(output), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line[:min(len(line), mostSaid)]), "")
}
