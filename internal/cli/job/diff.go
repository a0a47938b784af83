package job

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// differ prints the difference of two jobs, as Nomad's plan does: + added, - removed, +/- changed.
type differ struct {
	w   io.Writer
	all bool // what stays the same too
}

func marker(kind string) string {
	switch kind {
	case drover.DiffAdded:
		return "+ "
	case drover.DiffDeleted:
		return "- "
	case drover.DiffEdited:
		return "+/- "
	}
	return "" // unchanged
}

func (d *differ) printf(depth int, format string, args ...any) {
	fmt.Fprintf(d.w, strings.Repeat("  ", depth)+format+"\n", args...)
}

func (d *differ) skips(kind string) bool { return kind == drover.DiffNone && !d.all }

func (d *differ) job(j *drover.JobDiff) {
	d.printf(0, "%sJob: %q", marker(j.Type), j.ID)
	d.body(1, j.Type, j.Fields, j.Objects)
	for _, g := range j.TaskGroups {
		d.group(j.Type, g)
	}
}

func (d *differ) group(parent string, g *drover.TaskGroupDiff) {
	if d.skips(g.Type) && len(g.Updates) == 0 {
		return
	}
	var does []string
	for _, k := range slices.Sorted(maps.Keys(g.Updates)) {
		does = append(does, fmt.Sprintf("%d %s", g.Updates[k], k))
	}
	text := ""
	if len(does) > 0 {
		text = " (" + strings.Join(does, ", ") + ")"
	}
	d.printf(0, "%sTask Group: %q%s", marker(g.Type), g.Name, text)
	if g.Type == drover.DiffDeleted && parent != drover.DiffDeleted {
		return // that it goes says all
	}
	d.body(1, g.Type, g.Fields, g.Objects)
	for _, t := range g.Tasks {
		d.task(t)
	}
}

func (d *differ) task(t *drover.TaskDiff) {
	if d.skips(t.Type) {
		return
	}
	d.printf(1, "%sTask: %q%s", marker(t.Type), t.Name, notes(t.Annotations))
	if t.Type != drover.DiffDeleted {
		d.body(2, t.Type, t.Fields, t.Objects)
	}
}

func (d *differ) body(depth int, kind string, fields []*drover.FieldDiff, objects []*drover.ObjectDiff) {
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

// field prints one value; in an object that is added or removed as a whole there is no other value to tell.
func (d *differ) field(depth int, parent string, f *drover.FieldDiff) {
	kind := f.Type
	if kind == drover.DiffEdited && (parent == drover.DiffAdded || parent == drover.DiffDeleted) {
		kind = parent
	}
	switch {
	case d.skips(kind):
	case kind == drover.DiffAdded:
		d.printf(depth, "+ %s: %q%s", f.Name, f.New, notes(f.Annotations))
	case kind == drover.DiffDeleted:
		d.printf(depth, "- %s: %q%s", f.Name, f.Old, notes(f.Annotations))
	case kind == drover.DiffEdited:
		d.printf(depth, "+/- %s: %q => %q%s", f.Name, f.Old, f.New, notes(f.Annotations))
	default:
		d.printf(depth, "%s: %q", f.Name, f.New)
	}
}

func notes(annotations []string) string {
	if len(annotations) == 0 {
		return ""
	}
	return " (" + strings.Join(annotations, ", ") + ")"
}
