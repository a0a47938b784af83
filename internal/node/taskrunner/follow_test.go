package taskrunner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/lookups"
	"github.com/drover-project/drover/internal/node/rendering"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/secrets"
)

// vars are variables as control has them; a value "" is refused.
type vars struct {
	mu      sync.Mutex
	values  map[string]string
	index   map[string]int
	changed chan struct{}
}

func newVars() *vars {
	return &vars{values: map[string]string{}, index: map[string]int{}, changed: make(chan struct{})}
}

func (v *vars) put(path, value string) { v.putAll(map[string]string{path: value}) }

// putAll changes several at once: whoever is told of one is told of all.
func (v *vars) putAll(values map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for path, value := range values {
		v.values[path] = value
		v.index[path]++
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *vars) Look(ctx context.Context, _ string, asked []exchange.Lookup, _ time.Duration) (found []exchange.Found, err error) {
	for ctx.Err() == nil {
		v.mu.Lock()
		changed := v.changed
		for i, a := range asked {
			f := exchange.Found{At: i, Version: fmt.Sprint(v.index[a.Question.Name])}
			if value, has := v.values[a.Question.Name]; has && value == "" {
				f.Refused = "Permission denied"
			} else if has {
				f.Data, _ = json.Marshal(&secrets.Variable{Items: map[string]string{"v": value}})
			}
			if f.Version != a.Seen {
				found = append(found, f)
			}
		}
		v.mu.Unlock()
		if len(found) > 0 {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// here renders in this process.
type here struct{}

func (here) Evaluate(_ context.Context, _ string, content []byte) ([]byte, error) {
	return rendering.Func(content)
}

// withTemplates has the bundle's task have templates, which read variables.
func (b *bundle) withTemplates(list ...*drover.Template) *vars {
	v := newVars()
	require.NoError(b.t, b.cfg.Dir.Build())
	followed := lookups.New(v, "n", lookups.Retry{}, clock.Wall{}, b.shared.Log)
	settings := hook.Settings{Evaluator: here{}, Clock: clock.Wall{}, Lookups: followed}
	b.shared.Settings, b.shared.Hooks = settings, hook.Standard(settings)
	b.cfg.Alloc.Namespace = "default"
	b.cfg.Task.Templates = list
	return v
}

// reads is a template that has the variable's value.
func reads(path, dest, mode string) *drover.Template {
	return &drover.Template{
		EmbeddedTmpl: `{{ with nomadVar "` + path + `" }}{{ .v }}{{ end }}`, DestPath: dest, ChangeMode: mode, Splay: new(time.Duration(0)),
	}
}

// count is how many events of the task's history have the text in their message.
func (b *bundle) count(text string) (n int) {
	for _, e := range b.runner.Status().State.Events {
		if strings.Contains(e.DisplayMessage, text) {
			n++
		}
	}
	return n
}

// TestTemplateWaits: a start waits for a variable that is not there, tells so, and holds up no other start.
func TestTemplateWaits(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		v := b.withTemplates(reads("a", "local/a", "restart"), reads("b", "local/b", "restart"))
		b.fresh()
		b.after(time.Minute)
		require.Equal(t, taskmachine.Preparing, b.phase())
		require.Equal(t, 1, b.count("Missing: nomad.var.block(a@default.global), nomad.var.block(b@default.global)"), b.history())
		require.Empty(t, b.shared.Slots, "it is no start under way")
		v.put("a", "1")
		b.after(time.Second)
		require.Equal(t, taskmachine.Preparing, b.phase())
		require.Equal(t, drover.TaskTemplate, b.last().Type)
		require.Equal(t, "Missing: nomad.var.block(b@default.global)", b.last().DisplayMessage)
		require.Equal(t, "1", b.token("local/a"))
		v.put("b", "2")
		b.after(time.Second)
		require.Equal(t, taskmachine.Running, b.phase())
		require.Equal(t, "2", b.token("local/b"))
	})
}

// TestTemplateDenied: what the task may not read fails its start with the reason, and is tried again under its policy.
func TestTemplateDenied(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		v := b.withTemplates(reads("other", "local/a", "restart"))
		v.put("other", "")
		b.fresh()
		b.after(500 * time.Millisecond)
		require.Equal(t, taskmachine.Backoff.String(), b.phase().String(), b.history())
		require.Equal(t, 1, b.count("template 0 (local/a): nomad.var.block(other@default.global): Permission denied: a task may read its own"))
		v.put("other", "x")
		b.after(time.Minute)
		b.after(time.Second) // the start
		require.Equal(t, taskmachine.Running, b.phase())
	})
}

// TestTemplateRestarts: a rotated variable restarts the task exactly once, with all that changed; the same text changes nothing.
func TestTemplateRestarts(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		env := reads("a", "secrets/env", "restart")
		env.Envvars, env.EmbeddedTmpl = true, `{{ with nomadVar "a" }}PASS={{ .v }}{{ end }}`
		v := b.withTemplates(env, reads("b", "local/b", "restart"))
		v.put("a", "1")
		v.put("b", "1")
		b.fresh()
		b.after(time.Second)
		require.Equal(t, taskmachine.Running, b.phase())
		v.put("a", "1")
		b.after(time.Minute)
		require.Zero(t, b.runner.Status().State.Restarts)
		v.putAll(map[string]string{"a": "2", "b": "2"})
		b.after(time.Minute)
		b.after(time.Minute) // the stop
		b.after(time.Second) // the start
		require.Equal(t, uint64(1), b.runner.Status().State.Restarts)
		require.Equal(t, 1, b.count("Template with change_mode restart re-rendered"))
		require.Equal(t, taskmachine.Running, b.phase())
		require.Equal(t, "PASS=2", b.token("secrets/env"))
		require.Equal(t, "2", b.token("local/b"))
		require.Equal(t, "2", b.world.Running("main").Spec.Env["PASS"])
		b.after(time.Hour)
		require.Equal(t, uint64(1), b.runner.Status().State.Restarts)
	})
}

// TestTemplateSignals: a signal is sent once for all templates that ask for it, after the splay; noop and once tell nobody.
func TestTemplateSignals(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		a, c := reads("a", "local/a", "signal"), reads("b", "local/b", "signal")
		quiet, once := reads("c", "local/c", "noop"), reads("d", "local/d", "restart")
		a.ChangeSignal, c.ChangeSignal, once.Once = "SIGHUP", "SIGHUP", true
		a.Splay = new(time.Minute)
		v := b.withTemplates(a, c, quiet, once)
		for _, path := range []string{"a", "b", "c", "d"} {
			v.put(path, "1")
		}
		b.fresh()
		b.after(time.Second)
		v.put("c", "2")
		v.put("d", "2")
		b.after(time.Minute)
		require.Equal(t, "2", b.token("local/c"))
		require.Equal(t, "1", b.token("local/d"))
		require.Zero(t, b.count("Template re-rendered"))
		v.putAll(map[string]string{"a": "2", "b": "2"})
		b.after(time.Minute)
		require.Equal(t, 1, b.count("Template re-rendered"))
		require.Equal(t, "2", b.token("local/a"))
		require.Equal(t, taskmachine.Running, b.phase())
		require.Zero(t, b.runner.Status().State.Restarts)
	})
}

// TestTemplateKeepsWhatItHas: what fails to render anew, or lacks a variable now, leaves the task with what it has.
func TestTemplateKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		tmpl := reads("a", "local/a", "restart")
		tmpl.EmbeddedTmpl = `{{ with nomadVar "a" }}{{ parseInt .v.Value }}{{ end }}`
		v := b.withTemplates(tmpl)
		v.put("a", "1")
		b.fresh()
		b.after(time.Second)
		v.put("a", "hunter2")
		b.after(time.Minute)
		require.Equal(t, 1, b.count("the task keeps what it has"))
		require.Zero(t, b.count("hunter2"))
		v.put("a", "")
		b.after(time.Minute)
		require.Equal(t, 1, b.count("Permission denied"))
		require.Equal(t, "1", b.token("local/a"))
		v.put("a", "1")
		b.after(time.Minute)
		require.Zero(t, b.runner.Status().State.Restarts)
		require.Equal(t, taskmachine.Running, b.phase())
	})
}

// TestTemplateComesToRest: with wait, a template is rendered once its answers have not changed for a while, or at the latest after max.
func TestTemplateComesToRest(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		tmpl := reads("a", "local/a", "noop")
		tmpl.Wait = &drover.WaitConfig{Min: new(10 * time.Second), Max: new(time.Minute)}
		v := b.withTemplates(tmpl)
		v.put("a", "0")
		b.fresh()
		b.after(time.Second)
		for i := range 7 {
			v.put("a", fmt.Sprint(i))
			b.after(8 * time.Second)
			require.Equal(t, "0", b.token("local/a"), i)
		}
		v.put("a", "7")
		b.after(8 * time.Second)
		require.Equal(t, "7", b.token("local/a"), "after a minute in any case")
		v.put("a", "8")
		b.after(11 * time.Second)
		require.Equal(t, "8", b.token("local/a"))
	})
}

// TestTemplateAfterRestore: the next agent goes on where the last one was. What changed meanwhile is rendered, what did not is not.
func TestTemplateAfterRestore(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		v := b.withTemplates(reads("a", "local/a", "restart"))
		v.put("a", "1")
		b.fresh()
		b.after(time.Second)
		require.NoError(t, os.WriteFile(b.cfg.Dir.Task("main").Local+"/a", []byte("the task's own"), 0o600))
		b.apply(b.restored())
		b.after(time.Minute)
		require.Equal(t, "the task's own", b.token("local/a"), "nothing changed")
		require.Zero(t, b.runner.Status().State.Restarts)

		b.leave()
		v.put("a", "2")
		b.apply(b.recovered(b.stored()))
		b.after(time.Minute)
		b.after(time.Second)
		require.Equal(t, "2", b.token("local/a"))
		require.Equal(t, uint64(1), b.runner.Status().State.Restarts)
		b.leave()
		synctest.Wait()
	})
}
