package intake

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"drover"
)

// structDiff compares two structs of the same type, field by field.
func structDiff(old, now reflect.Value, skip map[string]bool) (fields []*drover.FieldDiff, objects []*drover.ObjectDiff) {
	t := now.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || skip[f.Name] {
			continue
		}
		fs, os := valueDiff(f.Name, old.Field(i), now.Field(i))
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	return fields, objects
}

// valueDiff compares two values of the same type. Either may be invalid: not there.
func valueDiff(name string, old, now reflect.Value) ([]*drover.FieldDiff, []*drover.ObjectDiff) {
	old, now = resolve(old), resolve(now)
	if !old.IsValid() && !now.IsValid() {
		return nil, nil
	}
	switch kind(old, now) {
	case reflect.Struct:
		return nil, objectDiff(name, old, now)
	case reflect.Map:
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

func objectDiff(name string, old, now reflect.Value) []*drover.ObjectDiff {
	d := &drover.ObjectDiff{Type: kindOf(!old.IsValid(), !now.IsValid()), Name: name}
	if !old.IsValid() {
		old = reflect.Zero(now.Type())
	}
	if !now.IsValid() {
		now = reflect.Zero(old.Type())
	}
	d.Fields, d.Objects = structDiff(old, now, nil)
	if len(d.Fields)+len(d.Objects) == 0 && d.Type == drover.DiffEdited {
		return nil
	}
	return []*drover.ObjectDiff{d}
}

// mapDiff writes strings as fields "Meta[key]", everything else as objects.
func mapDiff(name string, old, now reflect.Value) ([]*drover.FieldDiff, []*drover.ObjectDiff) {
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
	var fields []*drover.FieldDiff
	var objects []*drover.ObjectDiff
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fs, os := valueDiff(name+"["+k+"]", at(old, k), at(now, k))
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	if name == "Config" && len(fields)+len(objects) > 0 { // a driver's configuration is an object of its own
		for _, f := range fields {
			f.Name = f.Name[len("Config[") : len(f.Name)-1]
		}
		return nil, []*drover.ObjectDiff{{Type: collected(fields, objects), Name: name, Fields: fields, Objects: objects}}
	}
	return fields, objects
}

// sliceDiff compares lists as sets: values by what they are, objects by what they hold.
func sliceDiff(name string, old, now reflect.Value) []*drover.ObjectDiff {
	before, after := elements(old), elements(now)
	var fields []*drover.FieldDiff
	var objects []*drover.ObjectDiff
	for i, v := range before {
		if at := slices.IndexFunc(after, func(w reflect.Value) bool { return equal(v, w) }); at >= 0 {
			after = slices.Delete(after, at, at+1)
			continue
		}
		fs, os := element(name, i, v, reflect.Value{})
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	for i, w := range after {
		fs, os := element(name, i, reflect.Value{}, w)
		fields, objects = append(fields, fs...), append(objects, os...)
	}
	if len(fields) > 0 {
		objects = append(objects, &drover.ObjectDiff{Type: collected(fields, nil), Name: name, Fields: fields})
	}
	return objects
}

func element(name string, i int, old, now reflect.Value) ([]*drover.FieldDiff, []*drover.ObjectDiff) {
	if k := kind(old, now); k == reflect.Struct || k == reflect.Map || k == reflect.Slice {
		fs, os := valueDiff(singular(name), old, now)
		if k == reflect.Map && len(fs) > 0 {
			os = append(os, &drover.ObjectDiff{Type: collected(fs, nil), Name: singular(name), Fields: fs})
			fs = nil
		}
		return fs, os
	}
	return valueDiff(name+"["+strconv.Itoa(i)+"]", old, now)
}

// singular names one of a list: Constraints → Constraint.
func singular(name string) string {
	switch {
	case name == "Affinities":
		return "Affinity"
	case len(name) > 1 && name[len(name)-1] == 's':
		return name[:len(name)-1]
	}
	return name
}

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

func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// collected is the kind of an object that only is the sum of its parts.
func collected(fields []*drover.FieldDiff, objects []*drover.ObjectDiff) string {
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
	return drover.DiffEdited
}

func fieldDiff(name, old, now string) []*drover.FieldDiff {
	if old == now {
		return nil
	}
	return []*drover.FieldDiff{{Type: kindOf(old == "", now == ""), Name: name, Old: old, New: now}}
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
