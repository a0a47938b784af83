package intake

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/jobdiff"
)

// structDiff compares two structs of the same type, field by field. One of them may be invalid: not there; then what
// the other has not set is no difference.
func structDiff(old, now reflect.Value, skip map[string]bool) (fields []*jobdiff.Field, objects []*jobdiff.Object) {
	there := now
	if !there.IsValid() {
		there = old
	}
	at := func(v reflect.Value, i int) reflect.Value {
		if !v.IsValid() {
			return v
		}
		return v.Field(i)
	}
	// Of a struct that was added or deleted only the fields that are set are listed.
	alone := !old.IsValid() || !now.IsValid()
	for i := range there.NumField() {
		f := there.Type().Field(i)
		if !f.IsExported() || skip[f.Name] || alone && there.Field(i).IsZero() {
			continue
		}
		fs, os := valueDiff(f.Name, at(old, i), at(now, i))
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	return fields, objects
}

// freeForm are the fields whose keys are the user's and may be nested.
var freeForm = map[string]bool{"Config": true, "Policy": true, "Check": true}

// valueDiff compares two values of the same type. Either may be invalid: not there.
func valueDiff(name string, old, now reflect.Value) ([]*jobdiff.Field, []*jobdiff.Object) {
	old, now = resolve(old), resolve(now)
	if !old.IsValid() && !now.IsValid() {
		return nil, nil
	}
	switch kind(old, now) {
	case reflect.Struct:
		return nil, objectDiff(name, old, now)
	case reflect.Map:
		if freeForm[name] {
			return nil, freeDiff(name, old, now)
		}
		return mapDiff(name, old, now)
	case reflect.Slice:
		return nil, sliceDiff(name, old, now)
	}
	return fieldDiff(name, text(old), text(now)), nil
}

// resolve follows pointers and interfaces; nil becomes the invalid value.
func resolve(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// kind returns the kind by which two values are compared; at least one of them is there. Times and byte slices count as
// text: their parts mean nothing to a reader.
func kind(old, now reflect.Value) reflect.Kind {
	v := now
	if !v.IsValid() {
		v = old
	}
	if _, ok := v.Interface().(time.Time); ok {
		return reflect.String
	}
	if b, ok := v.Interface().([]byte); ok && b != nil {
		return reflect.String
	}
	return v.Kind()
}

// objectDiff compares two structs. It returns no difference if all fields are equal, but one if either struct is not
// there.
func objectDiff(name string, old, now reflect.Value) []*jobdiff.Object {
	d := &jobdiff.Object{Type: kindOf(!old.IsValid(), !now.IsValid()), Name: name}
	d.Fields, d.Objects = structDiff(old, now, nil)
	if len(d.Fields)+len(d.Objects) == 0 && d.Type == jobdiff.Edited {
		return nil
	}
	return []*jobdiff.Object{d}
}

// mapDiff writes strings as fields "Meta[key]", everything else as objects.
func mapDiff(name string, old, now reflect.Value) ([]*jobdiff.Field, []*jobdiff.Object) {
	keys := map[string]bool{}
	for _, m := range []reflect.Value{old, now} {
		if m.IsValid() {
			for _, k := range m.MapKeys() {
				keys[k.String()] = true
			}
		}
	}
	at := func(m reflect.Value, k string) reflect.Value {
		if !m.IsValid() {
			return reflect.Value{}
		}
		return m.MapIndex(reflect.ValueOf(k).Convert(m.Type().Key()))
	}
	var fields []*jobdiff.Field
	var objects []*jobdiff.Object
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fs, os := valueDiff(name+"["+k+"]", at(old, k), at(now, k))
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	return fields, objects
}

// freeDiff compares free-form values (a driver's configuration, a scaling policy) as an object of its own with flat
// names: command, args[0], mount[0][type].
func freeDiff(name string, old, now reflect.Value) []*jobdiff.Object {
	before, after := map[string]string{}, map[string]string{}
	flatten("", old, before)
	flatten("", now, after)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var fields []*jobdiff.Field
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fields = append(fields, fieldDiff(k, before[k], after[k])...)
	}
	if len(fields) == 0 {
		return nil
	}
	d := &jobdiff.Object{Type: kindOf(!old.IsValid() || old.Len() == 0, !now.IsValid() || now.Len() == 0), Name: name, Fields: fields}
	return []*jobdiff.Object{d}
}

// flatten writes the leaves of a nested value into the map, under names such as mount[0][type]. Null values have no
// entry.
func flatten(name string, v reflect.Value, into map[string]string) {
	v = resolve(v)
	at := func(key string) string {
		if name == "" {
			return key
		}
		return name + "[" + key + "]"
	}
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Map:
		for it := v.MapRange(); it.Next(); {
			flatten(at(text(it.Key())), it.Value(), into)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			flatten(at(strconv.Itoa(i)), v.Index(i), into)
		}
	default:
		into[name] = text(v)
	}
}

// sliceDiff compares lists as sets: values by what they are, objects by what they hold.
func sliceDiff(name string, old, now reflect.Value) []*jobdiff.Object {
	before, after := elements(old), elements(now)
	matched := make([]bool, len(after))
	var fields []*jobdiff.Field
	var objects []*jobdiff.Object
	add := func(old, now reflect.Value) {
		fs, os := element(name, old, now)
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	for _, v := range before {
		at := -1
		for k, w := range after {
			if !matched[k] && equal(v, w) {
				at = k
				break
			}
		}
		if at < 0 {
			add(v, reflect.Value{})
			continue
		}
		matched[at] = true
	}
	for k, w := range after {
		if !matched[k] {
			add(reflect.Value{}, w)
		}
	}
	if len(fields) > 0 {
		objects = append(objects, &jobdiff.Object{Type: collected(fields, nil), Name: name, Fields: fields})
	}
	return objects
}

// element is one of a list, which is taken as a set: its place says nothing, so it has none in its name.
func element(name string, old, now reflect.Value) ([]*jobdiff.Field, []*jobdiff.Object) {
	if k := kind(old, now); k == reflect.Struct || k == reflect.Map || k == reflect.Slice {
		fs, os := valueDiff(singular(name), old, now)
		if k == reflect.Map && len(fs) > 0 {
			os = append(os, &jobdiff.Object{Type: collected(fs, nil), Name: singular(name), Fields: fs})
			fs = nil
		}
		return fs, os
	}
	return valueDiff(name, old, now)
}

// singular names one of a list: Constraints → Constraint.
func singular(name string) string {
	switch {
	case name == "ReservedPorts":
		return "Static Port"
	case name == "DynamicPorts":
		return "Dynamic Port"
	case strings.HasSuffix(name, "ies"): // Affinities, Identities
		return strings.TrimSuffix(name, "ies") + "y"
	case len(name) > 1 && name[len(name)-1] == 's':
		return name[:len(name)-1]
	}
	return name
}

// elements returns the members of a list without pointers around them; nil pointers are left out.
func elements(list reflect.Value) []reflect.Value {
	if !list.IsValid() {
		return nil
	}
	var out []reflect.Value
	for i := range list.Len() {
		if v := resolve(list.Index(i)); v.IsValid() {
			out = append(out, v)
		}
	}
	return out
}

// equal compares by content: two lists of pointers to equal objects do not differ.
func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// collected is the kind of an object that only is the sum of its parts.
func collected(fields []*jobdiff.Field, objects []*jobdiff.Object) string {
	kinds := map[string]bool{}
	for _, f := range fields {
		kinds[f.Type] = true
	}
	for _, o := range objects {
		kinds[o.Type] = true
	}
	if len(kinds) == 1 {
		for k := range kinds {
			return k
		}
	}
	return jobdiff.Edited
}

// fieldDiff compares two texts. The empty text counts as not set, as in Nomad, so it makes the difference Added or
// Deleted.
func fieldDiff(name, old, now string) []*jobdiff.Field {
	if old == now {
		return nil
	}
	return []*jobdiff.Field{{Type: kindOf(old == "", now == ""), Name: name, Old: old, New: now}}
}

// text writes a value as Nomad does; "" for one that is not there.
func text(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return strconv.FormatInt(int64(x), 10)
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v.Interface())
}
