package job

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/jobdiff"
)

// differ prints the difference of two jobs, as Nomad's plan does: + added, - removed, +/- changed.
type differ struct {
	w   io.Writer
	all bool // what stays the same too
}

// marker returns the sign that stands before a line of this kind of change; "" for what is the same in both jobs.
func marker(kind string) string {
	switch kind {
	case jobdiff.Added:
		return "+ "
	case jobdiff.Deleted:
		return "- "
	case jobdiff.Edited:
		return "+/- "
	}
	return "" // unchanged
}

// printf prints one line, indented by two blanks for each level of depth. Errors of the writer are not told: a
// command that prints more afterwards meets them again.
func (d *differ) printf(depth int, format string, args ...any) {
	fmt.Fprintf(d.w, strings.Repeat("  ", depth)+format+"\n", args...)
}

// skips reports whether something of this kind is left out. Unchanged parts are shown only with -verbose.
func (d *differ) skips(kind string) bool { return kind == jobdiff.None && !d.all }

// job prints the whole difference: the job's own fields and blocks first, then one part for each group.
func (d *differ) job(j *jobdiff.Job) {
	d.printf(0, "%sJob: %q", marker(j.Type), j.ID)
	d.body(1, j.Type, j.Fields, j.Objects)
	for _, g := range j.TaskGroups {
		d.group(j.Type, g)
	}
}

// group prints one group: in its heading what the scheduler would do (such as "2 create"), then fields, blocks and
// tasks. An unchanged group is shown if the scheduler would do something with it. parent is the kind of the job's
// change.
func (d *differ) group(parent string, g *jobdiff.Group) {
	if d.skips(g.Type) && len(g.Updates) == 0 {
		return
	}
	var does []string
	// The words are sorted, so that the same plan always prints the same heading.
	for _, k := range slices.Sorted(maps.Keys(g.Updates)) {
		does = append(does, fmt.Sprintf("%d %s", g.Updates[k], k))
	}
	text := ""
	if len(does) > 0 {
		text = " (" + strings.Join(does, ", ") + ")"
	}
	d.printf(0, "%sTask Group: %q%s", marker(g.Type), g.Name, text)
	if g.Type == jobdiff.Deleted && parent != jobdiff.Deleted {
		return // that it goes says all
	}
	d.body(1, g.Type, g.Fields, g.Objects)
	for _, t := range g.Tasks {
		d.task(t)
	}
}

// task prints one task, with annotations such as "forces create/destroy update". What a removed task held is not
// listed.
func (d *differ) task(t *jobdiff.Task) {
	if d.skips(t.Type) {
		return
	}
	d.printf(1, "%sTask: %q%s", marker(t.Type), t.Name, notes(t.Annotations))
	if t.Type != jobdiff.Deleted {
		d.body(2, t.Type, t.Fields, t.Objects)
	}
}

// body prints the fields and, nested in braces, the blocks of one object. kind is the kind of change of that object,
// which decides how its fields are shown.
func (d *differ) body(depth int, kind string, fields []*jobdiff.Field, objects []*jobdiff.Object) {
	for _, f := range fields {
		d.field(depth, kind, f)
	}
	for _, o := range objects {
		if d.skips(o.Type) {
			continue
		}
		d.printf(depth, "%s%s {", marker(o.Type), o.Name)
		d.body(depth+1, o.Type, o.Fields, o.Objects)
		d.printf(depth, "}")
	}
}

// field prints one value. In an object that was added or removed as a whole, an edited field has one value only, so
// it is shown as added or removed too.
func (d *differ) field(depth int, parent string, f *jobdiff.Field) {
	kind := f.Type
	if kind == jobdiff.Edited && (parent == jobdiff.Added || parent == jobdiff.Deleted) {
		kind = parent
	}
	before, after := readable(f.Name, f.Old), readable(f.Name, f.New)
	switch {
	case d.skips(kind):
	case kind == jobdiff.Added:
		d.printf(depth, "+ %s: %q%s", f.Name, after, notes(f.Annotations))
	case kind == jobdiff.Deleted:
		d.printf(depth, "- %s: %q%s", f.Name, before, notes(f.Annotations))
	case kind == jobdiff.Edited:
		d.printf(depth, "+/- %s: %q => %q%s", f.Name, before, after, notes(f.Annotations))
	default:
		d.printf(depth, "%s: %q", f.Name, after)
	}
}

// durations are the fields that the API gives in nanoseconds.
var durations = []string{
	"Delay", "Grace", "HealthyDeadline", "Interval", "KillTimeout", "LostAfter", "MaxClientDisconnect", "MaxDelay", "MaxRunDuration",
	"MinHealthyTime", "ProgressDeadline", "ShutdownDelay", "Splay", "Stagger", "StopAfterClientDisconnect", "StopOnClientAfter",
	"TTL", "Timeout",
}

// readable writes durations as job files do.
func readable(field, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n == 0 || !slices.Contains(durations, field) {
		return value
	}
	text := time.Duration(n).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// notes returns the annotations in parentheses, with a blank before them; "" if there are none.
func notes(annotations []string) string {
	if len(annotations) == 0 {
		return ""
	}
	return " (" + strings.Join(annotations, ", ") + ")"
}
