package form

import (
	"reflect"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	capacityType = reflect.TypeFor[drover.Capacity]()
)

// Of returns the struct type in which gohcl reads a struct of the vocabulary. It has the fields with an hcl tag, where
// Durations are texts and blocks are pointers, as they may be missing. The fields of a field with the tag ",squash" lie
// beside it; those of a drover.Capacity are cpu, memory and disk, of which ",squash,required" needs the first two.
func Of(t reflect.Type) reflect.Type { return reflect.StructOf(formFields(t)) }

func formFields(t reflect.Type) (list []reflect.StructField) {
	for i := range t.NumField() {
		f := t.Field(i)
		_, kind, tagged := Tag(f)
		switch {
		case !tagged:
			continue
		case f.Type == capacityType && kind != "block":
			list = append(list, capacityForm(kind == "squash,required")...)
			continue
		case kind == "squash":
			list = append(list, formFields(f.Type)...)
			continue
		case kind == "block":
			f.Type = blockForm(f.Type)
		case f.Type == durationType:
			f.Type = reflect.TypeFor[string]()
		}
		list = append(list, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
	}
	return list
}

// Tag returns the key and the kind of a field's hcl tag; ok is false if it has none.
func Tag(f reflect.StructField) (key, kind string, ok bool) {
	tag, ok := f.Tag.Lookup("hcl")
	key, kind, _ = strings.Cut(tag, ",")
	return key, kind, ok
}

func blockForm(t reflect.Type) reflect.Type {
	switch {
	case t.Kind() == reflect.Slice:
		return reflect.SliceOf(reflect.PointerTo(Of(t.Elem())))
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	case t == capacityType:
		return reflect.TypeFor[*Size]()
	}
	return reflect.PointerTo(Of(t))
}

// capacityForm is Size's fields; with required, cpu and memory have to be there.
func capacityForm(required bool) (list []reflect.StructField) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Size]()) {
		if key, _, _ := Tag(f); required && key != "disk" {
			f.Tag = reflect.StructTag(`hcl:"` + key + `"`)
		}
		list = append(list, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
	}
	return list
}

// Fill sets a struct of the vocabulary to what its form says. path is the keys of the blocks around it, each with a dot.
func (d *Durations) Fill(dst, said reflect.Value, path string) {
	for i := range dst.NumField() {
		f, to := dst.Type().Field(i), dst.Field(i)
		key, kind, tagged := Tag(f)
		switch from := said.FieldByName(f.Name); {
		case !tagged:
		case f.Type == capacityType && kind != "block":
			for k := range to.NumField() {
				to.Field(k).Set(said.FieldByName(capacityType.Field(k).Name))
			}
		case kind == "squash":
			d.Fill(to, said, path)
		case kind == "block" && f.Type.Kind() == reflect.Slice:
			for k := range from.Len() {
				to.Set(reflect.Append(to, reflect.New(f.Type.Elem()).Elem()))
				d.Fill(to.Index(k), from.Index(k).Elem(), path+key+"."+Label(from.Index(k).Elem()))
			}
		case kind == "block":
			d.fillBlock(to, from, path+key+".")
		case f.Type == durationType:
			to.SetInt(int64(d.Read(path+key, from.String())))
		default:
			to.Set(from)
		}
	}
}

// fillBlock is Fill for a block that may be missing.
func (d *Durations) fillBlock(to, from reflect.Value, path string) {
	if from.IsNil() {
		return
	}
	if size, ok := from.Interface().(*Size); ok {
		to.Set(reflect.ValueOf(size.Capacity()))
		return
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	d.Fill(to, from.Elem(), path)
}

// Label returns the block's label with a dot; "" if such blocks have none.
func Label(said reflect.Value) string {
	for i := range said.NumField() {
		if _, kind, _ := Tag(said.Type().Field(i)); kind == "label" {
			return said.Field(i).String() + "."
		}
	}
	return ""
}
