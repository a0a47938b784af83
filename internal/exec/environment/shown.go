package environment

import (
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// FromTemplates returns the environments that template jobs describe; other jobs are left out.
func FromTemplates(jobs iter.Seq[*drover.Job]) (envs []execution.Environment) {
	for job := range jobs {
		if env, err := FromTemplate(job); err == nil {
			envs = append(envs, env)
		}
	}
	return envs
}

// ShownJob looks a job up for tools that know Poseidon's jobs. If there is none of that name, it is the template of the
// environment with that number; nil without one. job looks up what is really stored.
func ShownJob(job func(namespace, id string) *drover.Job, namespace, id string) *drover.Job {
	found := job(namespace, id)
	number, ok := strings.CutPrefix(id, TemplatePrefix)
	if found != nil || !ok || namespace != drover.DefaultNamespace {
		return found
	}
	at := JobOf(number)
	kept := job(at.Namespace, at.ID)
	if kept == nil || kept.Stop {
		return nil
	}
	env, err := FromJob(kept)
	if err != nil {
		return nil
	}
	return Template(env, kept)
}

// ShownEvents returns the events with environments in place of the jobs in which they are kept. The argument is not
// changed, as others read it too.
func ShownEvents(events drover.Events) drover.Events {
	about := func(e drover.Event) bool { return e.Topic == drover.TopicEnvironment }
	if !slices.ContainsFunc(events.Events, about) {
		return events
	}
	events.Events = slices.Clone(events.Events)
	for i, e := range events.Events {
		job, ok := e.Payload["Job"].(*drover.Job)
		if !ok || !about(e) {
			continue
		}
		if env, err := FromJob(job); err == nil {
			events.Events[i].Payload = map[string]any{"Environment": env, "Deleted": e.Payload["Deleted"]}
		}
	}
	return events
}
