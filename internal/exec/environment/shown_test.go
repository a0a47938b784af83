package environment

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// keptJob is the job in which the environment with this number is stored.
func keptJob(t *testing.T, id string) *drover.Job {
	t.Helper()
	job, err := ToJob(Canonicalize(execution.Environment{ID: id, Image: "host", PoolSize: 3}), Options{})
	require.NoError(t, err)
	return job
}

func TestEnvironmentsAreShownAsTemplates(t *testing.T) {
	t.Parallel()
	stopped := keptJob(t, "8")
	stopped.Stop = true
	own := &drover.Job{Namespace: drover.DefaultNamespace, ID: TemplatePrefix + "9"}
	stored := map[string]*drover.Job{}
	for _, j := range []*drover.Job{keptJob(t, "7"), stopped, keptJob(t, "9"), own, {Namespace: drover.DefaultNamespace, ID: JobOf("6").ID}} {
		stored[j.Namespace+"/"+j.ID] = j
	}
	look := func(namespace, id string) *drover.Job { return stored[namespace+"/"+id] }
	for name, c := range map[string]struct {
		namespace, id string
		want          bool
	}{
		"an environment":             {drover.DefaultNamespace, TemplatePrefix + "7", true},
		"one that was removed":       {drover.DefaultNamespace, TemplatePrefix + "8", false},
		"one that nobody made":       {drover.DefaultNamespace, TemplatePrefix + "5", false},
		"a job that is none":         {drover.DefaultNamespace, TemplatePrefix + "6", false},
		"a name that is no template": {drover.DefaultNamespace, "7", false},
		"a namespace without any":    {"other", TemplatePrefix + "7", false},
		"the job of the environment": {drover.DefaultNamespace, JobOf("7").ID, true},
		"a template that is a job's": {drover.DefaultNamespace, TemplatePrefix + "9", true},
	} {
		got := ShownJob(look, c.namespace, c.id)
		require.Equal(t, c.want, got != nil, name)
		if c.want {
			require.Equal(t, c.id, got.ID, name)
		}
	}
	require.Same(t, own, ShownJob(look, drover.DefaultNamespace, own.ID), "what is stored counts")
	require.Same(t, stored[drover.DefaultNamespace+"/"+JobOf("7").ID], ShownJob(look, drover.DefaultNamespace, JobOf("7").ID))
}

func TestEnvironmentsOfTemplates(t *testing.T) {
	t.Parallel()
	kept := keptJob(t, "42")
	env, err := FromJob(kept)
	require.NoError(t, err)
	jobs := []*drover.Job{Template(env, kept), {ID: TemplatePrefix + "x"}, {ID: "web"}}
	got := FromTemplates(slices.Values(jobs))
	require.Len(t, got, 1)
	require.Equal(t, "42", got[0].ID)
	require.Equal(t, 3, got[0].PoolSize)
	require.Empty(t, FromTemplates(slices.Values(jobs[1:])))
}

func TestEventsTellOfEnvironments(t *testing.T) {
	t.Parallel()
	job := keptJob(t, "7")
	broken := &drover.Job{ID: JobOf("6").ID}
	events := drover.Events{Index: 5, Events: []drover.Event{
		{Topic: drover.TopicEnvironment, Key: "7", Payload: map[string]any{"Job": job, "Deleted": true}},
		{Topic: drover.TopicJob, Key: "7", Payload: map[string]any{"Job": job}},
		{Topic: drover.TopicEnvironment, Key: "6", Payload: map[string]any{"Job": broken}},
		{Topic: drover.TopicEnvironment, Key: "5", Payload: map[string]any{}},
	}}
	got := ShownEvents(events)
	require.Equal(t, uint64(5), got.Index)
	env, ok := got.Events[0].Payload["Environment"].(execution.Environment)
	require.True(t, ok)
	require.Equal(t, "7", env.ID)
	require.Equal(t, true, got.Events[0].Payload["Deleted"])
	require.Equal(t, events.Events[1:], got.Events[1:], "what is about none, or cannot be read, stays")
	require.Same(t, job, events.Events[0].Payload["Job"], "others read the same events")

	plain := drover.Events{Events: events.Events[1:2]}
	require.Equal(t, plain, ShownEvents(plain))
}
