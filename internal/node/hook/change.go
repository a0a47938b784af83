package hook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/workload"
)

// Change is what follows from templates that were rendered anew: one restart, or else signals and scripts, each once.
type Change struct {
	Restart bool
	Signals []string
	Scripts []*drover.ChangeScript
}

func (c *Change) empty() bool { return !c.Restart && len(c.Signals) == 0 && len(c.Scripts) == 0 }

// add adds what the template's change asks for.
func (c *Change) add(t *drover.Template) {
	switch t.ChangeMode {
	case "noop":
	case "signal":
		if !slices.Contains(c.Signals, t.ChangeSignal) {
			c.Signals = append(c.Signals, t.ChangeSignal)
		}
	case "script":
		if t.ChangeScript != nil {
			c.Scripts = append(c.Scripts, t.ChangeScript)
		}
	default:
		c.Restart = true
	}
}

// moments are when a change of a template's answers was seen first and last. It waits until they come to rest.
type moments struct{ first, last time.Time }

// due is when the template is rendered: wait.min after the last change, and wait.max after the first at the latest.
func (m moments) due(w *drover.WaitConfig) time.Time {
	if w == nil {
		return m.first
	}
	quiet := m.last.Add(optional.Value(w.Min))
	if w.Max != nil && m.first.Add(*w.Max).Before(quiet) {
		return m.first.Add(*w.Max)
	}
	return quiet
}

// Keeper is told of each rendering that is done, and of what follows from it. Done returns false if the rest is nothing to the templates
// any more: the task is restarted, and renders them itself.
type Keeper interface {
	Rendered(ctx context.Context, l *Live)
	Changed(ctx context.Context, c Change) (goOn bool)
}

// Run renders templates whose answers change, and tells the keeper, until ctx ends or the task is to be restarted. chance is a number in
// [0, 1) for the splay.
func (l *Live) Run(ctx context.Context, k Keeper, chance func() float64) {
	defer l.Close()
	waiting := map[*live]moments{}
	for ctx.Err() == nil {
		changed := l.follower.Changed()
		known, now := l.known(), l.settings.Clock.Now()
		next := clock.Forever
		var due []*live
		for _, t := range l.list {
			if !l.moved(t, known, waiting, now) {
				continue
			}
			if left := waiting[t].due(l.settings.Templates.wait(t.of.Wait)).Sub(now); left > 0 {
				next = min(next, left)
			} else {
				due = append(due, t)
				delete(waiting, t)
			}
		}
		if len(due) > 0 {
			if !l.renew(ctx, k, due, known, chance) {
				return
			}
			continue
		}
		clock.Await(ctx, l.settings.Clock, next, changed)
	}
}

// moved reports whether the template's answers are other ones than those that it was rendered with, and notes when they changed.
func (l *Live) moved(t *live, known map[exchange.Question]exchange.Found, waiting map[*live]moments, now time.Time) bool {
	if t.of.Once || len(ofControl(t.used)) == 0 {
		return false
	}
	for _, q := range ofControl(t.used) {
		if _, has := known[q]; !has {
			return false
		}
	}
	v := version(t.used, known)
	if v == t.version {
		delete(waiting, t)
		return false
	}
	m, has := waiting[t]
	if !has {
		m.first = now
	}
	if v != t.pending {
		m.last, t.pending = now, v
	}
	waiting[t] = m
	return true
}

// renew renders the templates, and does what follows. One that fails, or lacks something now, leaves what the task has.
func (l *Live) renew(ctx context.Context, k Keeper, due []*live, known map[exchange.Question]exchange.Found, chance func() float64) bool {
	if err := l.recall(ctx); err != nil {
		l.request.Emit(taskmachine.NewEvent(drover.TaskTemplate, "Template failed: "+err.Error()))
	}
	var c Change
	var splay time.Duration
	for _, t := range due {
		before := t.used
		written, err := l.rerender(ctx, t, known)
		if ctx.Err() != nil {
			return false
		}
		if !slices.Equal(before, t.used) {
			l.want()
		}
		if err != nil {
			l.request.Emit(taskmachine.NewEvent(drover.TaskTemplate, fmt.Sprintf("Template failed: template %d (%s): %v: the task keeps what it has",
				t.at, t.of.DestPath, err)))
		}
		if written {
			c.add(t.of)
			splay = max(splay, time.Duration(float64(optional.Value(t.of.Splay))*chance()))
		}
	}
	k.Rendered(ctx, l)
	if c.empty() {
		return true
	}
	clock.Sleep(ctx, l.settings.Clock, splay)
	if ctx.Err() != nil {
		return false
	}
	return k.Changed(ctx, c)
}

// rerender renders one template anew; written reports whether the task has another text now.
func (l *Live) rerender(ctx context.Context, t *live, known map[exchange.Question]exchange.Found) (written bool, err error) {
	t.version = version(t.used, known) // whatever comes of it: the same answers are not tried again
	result, err := l.render(ctx, t, known)
	if err != nil {
		return false, err
	}
	if !slices.Equal(result.Used, t.used) { // it asks something else now, and the answers to that come
		if t.used, t.version = result.Used, ""; len(result.Missing) == 0 {
			t.version = version(t.used, known)
		}
	}
	if len(result.Missing) > 0 || l.stands(t, result.Text) {
		return false, nil
	}
	return true, l.write(t, result.Text)
}

// recall finds again what an earlier agent had put into the task's environment: tokens, and what templates added.
func (l *Live) recall(ctx context.Context) error {
	if !l.restored {
		return nil
	}
	l.restored = false
	r := l.request
	list, _ := exposed(r.Alloc.ID, r.Task)
	if slices.ContainsFunc(list, func(w *workload.Identity) bool { return w.Env }) {
		if err := (identities{l.settings.Signer}).Prestart(ctx, r); err != nil {
			return err
		}
	}
	for _, t := range l.list {
		if !t.of.Envvars {
			continue
		}
		text, err := readFile(r, t.of.DestPath)
		if err != nil {
			return err
		}
		vars, err := parseEnvFile(text)
		if err != nil {
			return err
		}
		r.Env = r.Env.With(vars)
	}
	return nil
}
