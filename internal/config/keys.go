package config

import (
	"reflect"

	"github.com/drover-project/drover/internal/config/form"
	"github.com/drover-project/drover/internal/config/machines"
)

// Keys is the configuration under the keys of a file, without what nobody has set: written as JSON it is a file again.
// Secrets are in it.
func (a *Agent) Keys() map[string]any { return keysOf(reflect.ValueOf(a).Elem()) }

// keysOf are the keys of a struct with hcl tags.
func keysOf(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		key, kind, tagged := form.Tag(v.Type().Field(i))
		switch field := v.Field(i); {
		case !tagged || kind == "remain" || kind == "label" || field.IsZero():
		case kind == "block":
			out[key] = blocksOf(field)
		default:
			out[key] = reflect.Indirect(field).Interface()
		}
	}
	return out
}

// blocksOf is one block, or a list of blocks, each below its label if it has one.
func blocksOf(v reflect.Value) any {
	if v.Kind() != reflect.Slice {
		return blockOf(v)
	}
	var list []any
	for i := range v.Len() {
		one := blockOf(v.Index(i))
		if label := form.Label(reflect.Indirect(v.Index(i))); label != "" {
			one = map[string]any{label[:len(label)-1]: one}
		}
		list = append(list, one)
	}
	return list
}

func blockOf(v reflect.Value) map[string]any {
	if pool, ok := v.Interface().(*machines.Pool); ok && pool.Said() != nil {
		v = reflect.ValueOf(pool.Said())
	}
	return keysOf(reflect.Indirect(v))
}
