package jobs

import (
	"encoding/json"
	"reflect"

	"github.com/drover-project/drover"
)

// OnlySet returns what is to be written as JSON of a job that was just read: only the fields that are set.
func OnlySet(j *drover.Job) any { return onlySet(reflect.ValueOf(j)) }

// onlySet returns what v holds, without the fields that nobody set: clients that keep pointers (Nomad's api.Job) tell
// a field that is not there from one that is empty. A pointer that is set stays, whatever it points to.
func onlySet(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return onlySet(v.Elem())
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Interface()
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = onlySet(v.Index(i))
		}
		return list
	case reflect.Map:
		if v.IsNil() || v.Type().Elem().Kind() != reflect.Pointer {
			return v.Interface() // free-form: what is in it was set
		}
		m := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = onlySet(it.Value())
		}
		return m
	case reflect.Struct:
		if _, own := v.Interface().(json.Marshaler); own {
			return v.Interface()
		}
		m := map[string]any{}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				m[f.Name] = onlySet(v.Field(i))
			}
		}
		return m
	}
	return v.Interface()
}
