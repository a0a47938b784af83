package traces

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// shell performs commands as Nomad's command line does: with Nomad's client, the requests which the recording of it has
// (TestWalks compares them), the exit codes which its manual gives.
type shell struct {
	api   *api.Client
	files map[string]string
	job   string
	index uint64 // that the last plan told
	out   strings.Builder
	wait  func(ctx context.Context) error // until something about the job changes

	flags flagged
}

// flagged are the flags of all commands.
type flagged struct {
	detach, purge, yes, enable, disable, force, ignoreSystem, keepIneligible, verbose, evals, forceReschedule, all bool
	checkIndex, deadline, task, signal, token, group, message, name, prefix                                        string
	version                                                                                                        uint64
	vars, meta                                                                                                     pairs
}

// pairs are k=v of a flag that may be given several times.
type pairs map[string]string

func (p pairs) String() string { return fmt.Sprint(map[string]string(p)) }

func (p pairs) Set(text string) error {
	k, v, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("not key=value: %q", text)
	}
	p[k] = v
	return nil
}

// exitError ends a command with a code of its own.
type exitError int

func (e exitError) Error() string { return "exit " + strconv.Itoa(int(e)) }

// verbs are the commands, by name.
var verbs = map[string]func(*shell, context.Context, []string) error{
	"job run": (*shell).jobRun, "job plan": (*shell).jobPlan, "job validate": (*shell).jobValidate, "job status": (*shell).jobStatus,
	"job stop": (*shell).jobStop, "job promote": (*shell).jobPromote, "job scale": (*shell).jobScale, "job revert": (*shell).jobRevert,
	"job eval": (*shell).jobEval, "job dispatch": (*shell).jobDispatch, "job periodic force": (*shell).periodicForce,
	"job history": (*shell).jobHistory, "job inspect": (*shell).jobInspect, "job allocs": (*shell).jobAllocs,
	"job deployments": (*shell).jobDeployments, "job tag apply": (*shell).tagApply, "job tag unset": (*shell).tagUnset,
	"deployment promote": (*shell).promote, "deployment fail": (*shell).fail, "deployment pause": (*shell).pause,
	"deployment resume": (*shell).resume, "deployment status": (*shell).deploymentStatus,
	"alloc stop": (*shell).allocStop, "alloc restart": (*shell).allocRestart, "alloc signal": (*shell).allocSignal,
	"alloc status": (*shell).allocStatus,
	"node drain":   (*shell).drain, "node eligibility": (*shell).eligibility,
	"system gc": (*shell).gc, "system reconcile summaries": (*shell).reconcile,
}

// run returns the exit code, and what the command prints.
func (s *shell) run(ctx context.Context, args []string) (verb string, exit int, said string, err error) {
	s.out.Reset()
	n := 0
	for n < len(args) && !strings.HasPrefix(args[n], "-") && verbs[verb] == nil {
		verb = strings.TrimSpace(verb + " " + args[n])
		n++
	}
	if verbs[verb] == nil {
		return verb, 0, "", fmt.Errorf("the test does not know this command: %s", verb)
	}
	rest, err := s.parse(verb, args[n:])
	if err != nil {
		return verb, 0, "", err
	}
	failed := verbs[verb](s, ctx, rest)
	code := exitError(0)
	switch {
	case failed == nil:
	case errors.As(failed, &code):
	default:
		code = 1
		s.say("%v", failed)
	}
	return verb, int(code), s.out.String(), nil
}

func (s *shell) parse(verb string, args []string) ([]string, error) {
	s.flags = flagged{vars: pairs{}, meta: pairs{}}
	f, v := flag.NewFlagSet(verb, flag.ContinueOnError), &s.flags
	f.SetOutput(io.Discard)
	for name, to := range map[string]*bool{
		"detach": &v.detach, "purge": &v.purge, "yes": &v.yes, "enable": &v.enable, "disable": &v.disable, "force": &v.force,
		"ignore-system": &v.ignoreSystem, "keep-ineligible": &v.keepIneligible, "verbose": &v.verbose, "evals": &v.evals,
		"force-reschedule": &v.forceReschedule, "all-tasks": &v.all, "p": &v.verbose,
	} {
		f.BoolVar(to, name, false, "")
	}
	for name, to := range map[string]*string{
		"check-index": &v.checkIndex, "deadline": &v.deadline, "task": &v.task, "s": &v.signal, "idempotency-token": &v.token,
		"group": &v.group, "m": &v.message, "name": &v.name, "id-prefix-template": &v.prefix,
	} {
		f.StringVar(to, name, "", "")
	}
	f.Uint64Var(&v.version, "version", 0, "")
	f.Var(v.vars, "var", "")
	f.Var(v.meta, "meta", "")
	err := f.Parse(args)
	return f.Args(), err
}

func (s *shell) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// file parses a job file. Nomad's program does that by itself; here the server's own parser takes its place, and is tried so.
func (s *shell) file(args []string) (*api.Job, *api.JobSubmission, error) {
	if len(args) != 1 || s.files[args[0]] == "" {
		return nil, nil, fmt.Errorf("the walk has no file %v", args)
	}
	source := s.files[args[0]]
	var values strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.flags.vars)) {
		fmt.Fprintf(&values, "%s = %s\n", name, literal(s.flags.vars[name]))
	}
	job, err := s.api.Jobs().ParseHCLOpts(&api.JobsParseRequest{JobHCL: source, Variables: values.String()})
	if err != nil {
		return nil, nil, fmt.Errorf("parsing %s: %w", args[0], err)
	}
	sent := &api.JobSubmission{Source: source, Format: "hcl2"}
	if len(s.flags.vars) > 0 {
		sent.VariableFlags = s.flags.vars
	}
	return job, sent, nil
}

// literal is a value of -var as a file of variables has it.
func literal(v string) string {
	if _, err := strconv.ParseFloat(v, 64); err == nil || v == "true" || v == "false" {
		return v
	}
	return strconv.Quote(v)
}

// called finds a job by what its identifier begins with; the whole one wins.
func (s *shell) called(id string) (string, error) {
	list, _, err := s.api.Jobs().List(&api.QueryOptions{Prefix: id, PerPage: 20})
	if err != nil {
		return "", err
	}
	for _, j := range list {
		if j.ID == id {
			return id, nil
		}
	}
	if len(list) == 1 {
		return list[0].ID, nil
	}
	return "", fmt.Errorf("%d jobs are called %q", len(list), id)
}

// in is what the requests about a found job carry.
func in() *api.QueryOptions { return &api.QueryOptions{Namespace: "default"} }

func to() *api.WriteOptions { return &api.WriteOptions{Namespace: "default"} }

// asked is one argument, of a job that was found.
func (s *shell) asked(args []string) (string, error) {
	if len(args) == 0 {
		return "", fmt.Errorf("the command needs a job")
	}
	return s.called(args[0])
}

// monitor follows an evaluation, and the deployment that it belongs to, to their ends.
func (s *shell) monitor(ctx context.Context, id string) error {
	if s.flags.detach || id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		e, _, err := s.api.Evaluations().Info(id, nil)
		if err != nil {
			return err
		}
		if e.Status == "pending" {
			if err := s.wait(ctx); err != nil {
				return fmt.Errorf("evaluation %s is pending: %w", id, err)
			}
			continue
		}
		s.say("evaluation %s", e.Status)
		if e.Status != "complete" {
			return fmt.Errorf("evaluation: %s", e.StatusDescription)
		}
		for group := range e.FailedTGAllocs {
			s.say("failed to place %s", group)
		}
		if e.DeploymentID != "" {
			return s.follow(ctx, e.DeploymentID)
		}
		if len(e.FailedTGAllocs) > 0 {
			return exitError(2)
		}
		return nil
	}
}

// follow watches a deployment: that it failed is an error, that it succeeded in the end is none.
func (s *shell) follow(ctx context.Context, id string) error {
	for {
		d, _, err := s.api.Deployments().Info(id, nil)
		if err != nil {
			return err
		}
		switch d.Status {
		case api.DeploymentStatusSuccessful:
			s.say("deployment %s", d.Status)
			return nil
		case api.DeploymentStatusFailed, api.DeploymentStatusCancelled:
			s.say("deployment %s: %s", d.Status, d.StatusDescription)
			return exitError(1)
		}
		if err := s.wait(ctx); err != nil {
			return fmt.Errorf("deployment is %s: %w", d.Status, err)
		}
	}
}
