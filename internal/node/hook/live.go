package hook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/lookups"
	"github.com/drover-project/drover/internal/node/rendering"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/optional"
)

// Live are a task's templates from one start to the next. One goroutine at a time has it.
type Live struct {
	settings Settings
	request  *Request
	follower *lookups.Follower // nil where control answers no templates
	list     []*live
	restored bool // by an agent that did not render them: what is in the environment has to be found again
}

// live is one template.
type live struct {
	at      int
	of      *drover.Template
	used    []rendering.Asked
	version string // of the answers that it was rendered with
	pending string // version of answers that it waits with
	text    []byte // nil: what was rendered stands in the file
	done    bool   // it was rendered
}

func newLive(ctx context.Context, s Settings, r *Request) *Live {
	l := &Live{settings: s, request: r}
	if s.Lookups != nil {
		l.follower = s.Lookups.Follow(ctx, r.Alloc, r.Task.Name)
	}
	for i, t := range r.Task.Templates {
		l.list = append(l.list, &live{at: i, of: t})
	}
	return l
}

// Restore returns the templates of a task that an earlier agent started, with what they had asked; nil if none asks anything.
func Restore(ctx context.Context, s Settings, r *Request, seen []localstate.Template) *Live {
	if s.Evaluator == nil || s.Lookups == nil || len(seen) == 0 || len(seen) != len(r.Task.Templates) {
		return nil
	}
	l := newLive(ctx, s, r)
	l.restored = true
	for i, t := range l.list {
		t.done, t.version = true, seen[i].Version
		for _, q := range seen[i].Asked {
			t.used = append(t.used, rendering.Asked{Question: q})
		}
	}
	if !l.asks() {
		l.Close()
		return nil
	}
	l.want()
	return l
}

// Record is what an agent needs that restores the task; nil if no template asks anything.
func (l *Live) Record() []localstate.Template {
	if l == nil || !l.asks() {
		return nil
	}
	out := make([]localstate.Template, len(l.list))
	for i, t := range l.list {
		out[i].Version = t.version
		for _, u := range t.used {
			out[i].Asked = append(out[i].Asked, u.Question)
		}
	}
	return out
}

// Close ends the following.
func (l *Live) Close() {
	if l != nil && l.follower != nil {
		l.follower.Close()
	}
}

// asks reports whether a template asks what may change.
func (l *Live) asks() bool {
	return l.follower != nil && slices.ContainsFunc(l.list, func(t *live) bool { return !t.of.Once && len(ofControl(t.used)) > 0 })
}

// ofControl are the questions that control answers.
func ofControl(used []rendering.Asked) (out []exchange.Question) {
	for _, u := range used {
		if u.Kind != rendering.AskFile {
			out = append(out, u.Question)
		}
	}
	return out
}

// want has all questions followed.
func (l *Live) want() {
	if l.follower == nil {
		return
	}
	var all []exchange.Question
	for _, t := range l.list {
		all = append(all, ofControl(t.used)...)
	}
	l.follower.Want(all)
}

func (l *Live) known() map[exchange.Question]exchange.Found {
	if l.follower == nil {
		return nil
	}
	return l.follower.Known()
}

// patience is how long an answer may take before the task's events say that it is waited for.
const patience = 3 * time.Second

// first renders all templates, and waits until they lack nothing.
func (l *Live) first(ctx context.Context) error {
	told := ""
	for {
		var changed <-chan struct{}
		if l.follower != nil {
			changed = l.follower.Changed()
		}
		known := l.known()
		missing, err := l.pass(ctx, known)
		if err != nil || len(missing) == 0 {
			return err
		}
		l.want()
		if l.follower == nil {
			return &Failure{Err: drover.Errorf(drover.Unavailable, "%s: control answers no templates", missing[0].Shown)}
		}
		if l.request.Yield != nil {
			l.request.Yield()
		}
		limit := clock.Forever
		if !answered(missing, known) && told == "" {
			limit = patience
		} else if text := missingText(missing); text != told {
			l.request.Emit(taskmachine.NewEvent(drover.TaskTemplate, text))
			told = text
		}
		if l.again(known) { // an answer came meanwhile
			continue
		}
		if !clock.Await(ctx, l.settings.Clock, limit, changed) && ctx.Err() != nil {
			return ctx.Err()
		}
		if limit == patience && told == "" && !l.again(known) {
			text := missingText(missing)
			l.request.Emit(taskmachine.NewEvent(drover.TaskTemplate, text))
			told = text
		}
	}
}

// again reports whether there are more answers than those.
func (l *Live) again(known map[exchange.Question]exchange.Found) bool {
	now := l.known()
	for q, f := range now {
		if k, had := known[q]; !had || k.Version != f.Version {
			return true
		}
	}
	return false
}

// answered reports whether there are answers to all of the questions.
func answered(asked []rendering.Asked, known map[exchange.Question]exchange.Found) bool {
	return !slices.ContainsFunc(asked, func(a rendering.Asked) bool { _, has := known[a.Question]; return !has })
}

// missingText names at most three of what is missing.
func missingText(missing []rendering.Asked) string {
	var names []string
	for _, m := range missing {
		if !slices.Contains(names, m.Shown) {
			names = append(names, m.Shown)
		}
	}
	more := ""
	if n := len(names) - 3; n > 0 {
		names, more = names[:3], fmt.Sprintf(", and %d more", n)
	}
	return "Missing: " + strings.Join(names, ", ") + more
}

// pass renders what is not rendered yet, and returns what that lacks. Errors: a Failure.
func (l *Live) pass(ctx context.Context, known map[exchange.Question]exchange.Found) (missing []rendering.Asked, err error) {
	for _, t := range l.list {
		if t.done {
			continue
		}
		result, err := l.render(ctx, t, known)
		if err != nil {
			return nil, t.failure(err)
		}
		if t.used = result.Used; len(result.Missing) > 0 {
			missing = append(missing, result.Missing...)
			if t.of.Envvars {
				break // later ones may need what it adds
			}
			continue
		}
		if err := l.write(t, result.Text); err != nil {
			return nil, t.failure(err)
		}
		t.version, t.done = version(t.used, known), true
	}
	l.want()
	return missing, nil
}

func (t *live) failure(err error) error {
	var denied *deniedError
	return &Failure{Recoverable: errors.As(err, &denied), Err: fmt.Errorf("template %d (%s): %w", t.at, t.of.DestPath, err)}
}

// deniedError is that the task may not know what it asks. Somebody may give it the right.
type deniedError struct {
	asked, why string
	unanswered bool // nobody said so: control does not answer
}

// Error names the question.
func (d *deniedError) Error() string {
	if d.unanswered {
		return d.asked + ": " + d.why
	}
	return d.asked + ": " + d.why + ": a task may read its own variables below nomad/jobs/JOB, and what policies of its job allow"
}

// render evaluates the template with the answers. Evaluation happens in a process that may use only little time and memory, because the
// text is the job author's.
func (l *Live) render(ctx context.Context, t *live, known map[exchange.Question]exchange.Found) (out rendering.Result, err error) {
	r := l.request
	source, err := templateSource(r, t.of)
	if err != nil {
		return out, err
	}
	request := rendering.Request{
		Source: source, Left: t.of.LeftDelim, Right: t.of.RightDelim, Strict: t.of.ErrMissingKey, Env: r.Env.Vars(),
		Namespace: r.Alloc.Namespace, Region: drover.DefaultRegion, Known: map[exchange.Question]string{}, Deny: l.settings.Templates.Deny,
	}
	if r.Alloc.Job != nil && r.Alloc.Job.Region != "" {
		request.Region = r.Alloc.Job.Region
	}
	for q, f := range known {
		if f.Refused == "" {
			request.Known[q] = string(f.Data)
		}
	}
	for {
		packed, err := l.settings.Evaluator.Evaluate(ctx, rendering.Name, request.Pack())
		if err != nil {
			return out, err
		}
		if out, err = rendering.Unpack(packed); err != nil {
			return out, err
		}
		more := false
		for _, m := range out.Missing {
			if f := known[m.Question]; f.Refused != "" {
				return out, &deniedError{m.Shown, f.Refused, f.Version == exchange.Unanswered}
			}
			if _, has := request.Known[m.Question]; m.Kind == rendering.AskFile && !has {
				text, err := readFile(r, m.Name)
				if err != nil {
					return out, fmt.Errorf("%s: %w", m.Shown, err)
				}
				request.Known[m.Question], more = text, true
			}
		}
		if !more {
			return out, nil
		}
	}
}

// version is of the answers to the questions; each text has one version.
func version(used []rendering.Asked, known map[exchange.Question]exchange.Found) string {
	h := sha256.New()
	for _, q := range ofControl(used) {
		fmt.Fprintf(h, "%q %q\n", q, known[q].Version)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// write puts the text where the template says, and into the task's environment.
func (l *Live) write(t *live, text []byte) error {
	r := l.request
	vars := map[string]string(nil)
	if t.of.Envvars {
		var err error
		if vars, err = parseEnvFile(string(text)); err != nil {
			return err
		}
	}
	perms, err := parsePerms(t.of.Perms)
	if err != nil {
		return err
	}
	root, rel, err := r.place(t.of.DestPath)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := writeFile(root, rel, text, perms); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if t.of.Uid != nil || t.of.Gid != nil {
		if err := root.Lchown(rel, optional.Or(t.of.Uid, -1), optional.Or(t.of.Gid, -1)); err != nil {
			return fmt.Errorf("changing the owner: %w", err)
		}
	}
	t.text = text
	if vars != nil {
		r.Env = r.Env.With(vars)
	}
	return nil
}

// stands reports whether the text is what the task has.
func (l *Live) stands(t *live, text []byte) bool {
	if t.text != nil {
		return bytes.Equal(t.text, text)
	}
	have, err := readFile(l.request, t.of.DestPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err == nil && have == string(text)
}
