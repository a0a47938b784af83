package config

import (
	"reflect"
	"slices"
	"strings"
)

// Merge returns base with over laid on it: what over says counts, maps are merged, labelled blocks are replaced by
// name, and lists are replaced as a whole.
func Merge(base, over *Agent) *Agent {
	out := *base
	mergeStruct(reflect.ValueOf(&out).Elem(), reflect.ValueOf(over).Elem())
	out.LogLevel = strings.ToLower(out.LogLevel)
	out.Ignored = slices.Compact(slices.Sorted(slices.Values(slices.Concat(base.Ignored, over.Ignored))))
	return &out
}

func mergeStruct(dst, src reflect.Value) {
	for i := range src.NumField() {
		d, s := dst.Field(i), src.Field(i)
		switch {
		case s.IsZero():
		case s.Kind() == reflect.Pointer && s.Type().Elem().Kind() == reflect.Struct && !d.IsNil():
			merged := reflect.New(s.Type().Elem())
			merged.Elem().Set(d.Elem())
			mergeStruct(merged.Elem(), s.Elem())
			d.Set(merged)
		case s.Kind() == reflect.Map && !d.IsNil():
			merged := reflect.MakeMap(s.Type())
			for _, m := range []reflect.Value{d, s} {
				for it := m.MapRange(); it.Next(); {
					merged.SetMapIndex(it.Key(), it.Value())
				}
			}
			d.Set(merged)
		case s.Kind() == reflect.Slice && s.Type().Elem().Kind() == reflect.Pointer:
			d.Set(mergeBlocks(d, s))
		default:
			d.Set(s)
		}
	}
}

// mergeBlocks replaces blocks of the same label (the first field) and appends the others.
func mergeBlocks(base, over reflect.Value) reflect.Value {
	out := reflect.MakeSlice(over.Type(), 0, base.Len()+over.Len())
	label := func(v reflect.Value) string { return v.Elem().Field(0).String() }
	named := map[string]bool{}
	for i := range over.Len() {
		named[label(over.Index(i))] = true
	}
	for i := range base.Len() {
		if !named[label(base.Index(i))] {
			out = reflect.Append(out, base.Index(i))
		}
	}
	return reflect.AppendSlice(out, over)
}
