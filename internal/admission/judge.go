package admission

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/tenant"
)

const (
	maxText       = 512 // bytes of a rule's description, and of its message
	maxNamespaces = 64
	maxReason     = 300 // bytes of what a verdict says of the task
)

var (
	ruleName      = lazyregexp.New(`^[a-zA-Z0-9-]{1,128}$`)
	namespaceGlob = lazyregexp.New(`^[a-zA-Z0-9*-]{1,128}$`)
)

// Submitter is who asks for a job.
type Submitter struct {
	Type     string // client or management
	Name     string
	Policies []string
	Roles    []string
}

// Volume is what a request for a volume may get.
type Volume struct {
	Path   string // on its node; "" = not known yet
	Plugin string // that made it; "" = it is in a node's configuration
}

// Volumes finds all that a job's request may get, on whichever node.
type Volumes func(j *drover.Job, r *drover.VolumeRequest) []Volume

// rule is one that is compiled.
type rule struct {
	*drover.AdmissionRule
	when  condition
	uses  []string // fields, in order
	token bool     // it asks for who asks for the job
	// it asks for what is behind volumes
	volumes bool
	err     error // it cannot be read, by this version of the program
}

// Set is the rules of a cluster, compiled. It may be used by several goroutines.
type Set []rule

// Complete gives a rule the level that it does not say, and checks it. Errors: Invalid, with the field.
func Complete(r *drover.AdmissionRule) error {
	bad := func(format string, args ...any) error {
		return drover.Errorf(drover.Invalid, "admission rule %q: %w", r.Name, fmt.Errorf(format, args...))
	}
	if !ruleName().MatchString(r.Name) {
		return drover.Errorf(drover.Invalid, "admission rule: invalid name %q. Must be 1 to 128 letters, digits or '-'", r.Name)
	}
	r.Level = cmp.Or(r.Level, drover.AdmissionEnforce)
	levels := []string{drover.AdmissionEnforce, drover.AdmissionWarn, drover.AdmissionDryRun}
	if !slices.Contains(levels, r.Level) {
		return bad("Level: %q is none of %s", r.Level, strings.Join(levels, ", "))
	}
	if len(r.Description) > maxText || len(r.Message) > maxText {
		return bad("Description and Message have at most %d bytes each", maxText)
	}
	if len(r.Namespaces) > maxNamespaces {
		return bad("Namespaces has %d entries, the limit is %d", len(r.Namespaces), maxNamespaces)
	}
	for _, glob := range r.Namespaces {
		if !namespaceGlob().MatchString(glob) {
			return bad("Namespaces: %q is no name of a namespace, in which * stands for any text", glob)
		}
	}
	if r.When == "" && len(r.Max) == 0 {
		return bad("it has neither When nor Max, and would be against every task")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Max)) {
		if f, ok := viewType.FieldByName(name); !ok || f.Type.Kind() != reflect.Int {
			return bad("Max: %q is none of a task's numbers %s", name, strings.Join(numbers(), ", "))
		}
		if r.Max[name] < 0 {
			return bad("Max: %s must not be negative, got %d", name, r.Max[name])
		}
	}
	if made := compiled(r); made.err != nil {
		return bad("When: %w", made.err)
	}
	return nil
}

// numbers are the fields that can have a maximum.
func numbers() (names []string) {
	for f := range viewType.Fields() {
		if f.Type.Kind() == reflect.Int {
			names = append(names, f.Name)
		}
	}
	return names
}

// Is reports whether the set is of these rules.
func (s Set) Is(rules []*drover.AdmissionRule) bool {
	return slices.EqualFunc(s, rules, func(r rule, of *drover.AdmissionRule) bool { return r.AdmissionRule == of })
}

// Compile makes a set of the rules, by their names. Those that the set before has are not read again.
func Compile(rules []*drover.AdmissionRule, before Set) Set {
	known := make(map[*drover.AdmissionRule]rule, len(before))
	for _, r := range before {
		known[r.AdmissionRule] = r
	}
	out := make(Set, len(rules))
	for i, r := range rules {
		made, ok := known[r]
		if !ok {
			made = compiled(r)
		}
		out[i] = made
	}
	return out
}

func compiled(r *drover.AdmissionRule) rule {
	out := rule{AdmissionRule: r, when: func(*View, element) truth { return yes }}
	if r.When != "" {
		var uses map[string]bool
		out.when, uses, out.err = compile(r.When)
		out.uses = slices.Sorted(maps.Keys(uses))
	}
	out.token = slices.ContainsFunc(out.uses, func(field string) bool { return strings.HasPrefix(field, "Token") })
	out.volumes = slices.ContainsFunc(out.uses, func(field string) bool { return strings.HasPrefix(field, "HostVolumeP") })
	return out
}

// covers reports whether the rule is for jobs of the namespace.
func (r *rule) covers(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.ContainsFunc(r.Namespaces, func(glob string) bool { return tenant.Matches(glob, namespace) })
}

// Judge says which rules are against which tasks of a canonical job, by rule and in the order of the tasks. Without a submitter, as for
// launches at their times, no rule is asked that wants to know who it is: it was when the job was registered. volumes is asked where a rule
// wants to know what is behind a volume.
func (s Set) Judge(j *drover.Job, by *Submitter, volumes Volumes) (out []drover.AdmissionVerdict) {
	of := make([]*rule, 0, len(s))
	for i := range s {
		if r := &s[i]; r.covers(j.Namespace) && (by != nil || !r.token) {
			of = append(of, r)
		}
	}
	if len(of) == 0 {
		return nil
	}
	if !slices.ContainsFunc(of, func(r *rule) bool { return r.volumes }) {
		volumes = nil
	}
	var views []*View
	each(j, by, volumes, func(v *View) { views = append(views, v) })
	for _, r := range of {
		for _, v := range views {
			if against, reason := r.against(v); against {
				out = append(out, drover.AdmissionVerdict{
					Rule: r.Name, Level: r.Level, Group: v.Group, Task: v.Task, Message: r.Message, Reason: reason,
				})
			}
		}
	}
	return out
}

// against reports whether the rule is against the task, and why.
func (r *rule) against(v *View) (bool, string) {
	if r.err != nil {
		return true, "the rule cannot be read: " + r.err.Error()
	}
	holds := r.when(v, element{})
	if holds == no {
		return false, ""
	}
	over, reasons := len(r.Max) == 0, []string{}
	for _, name := range slices.Sorted(maps.Keys(r.Max)) {
		if n := reflect.ValueOf(v).Elem().FieldByName(name).Int(); n > r.Max[name] {
			over, reasons = true, append(reasons, fmt.Sprintf("%s is %d, the most is %d", name, n, r.Max[name]))
		}
	}
	if !over {
		return false, ""
	}
	for _, name := range r.uses {
		if text, unknown := v.unknown[name]; !unknown {
			reasons = append(reasons, fmt.Sprintf("%s is %s", name, shown(reflect.ValueOf(v).Elem().FieldByName(name))))
		} else if holds == maybe {
			reasons = append(reasons, fmt.Sprintf("%s is not known before the task starts (%q)", name, text))
		}
	}
	reason := strings.Join(reasons, "; ")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return true, reason
}

// shown is a field's value for people. Of a map only the keys: what is in them may be nobody else's business.
func shown(v reflect.Value) string {
	if m, ok := v.Interface().(map[string]string); ok {
		return fmt.Sprintf("of %q", slices.Sorted(maps.Keys(m)))
	}
	if v.Kind() == reflect.String || v.Kind() == reflect.Slice {
		return fmt.Sprintf("%q", v.Interface())
	}
	return fmt.Sprint(v.Interface())
}
