package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// People write durations as "1m30s", programs as nanoseconds: bodies may hold either. encoding/json knows numbers only,
// so a body with a text in place of a duration is rewritten, and decoded again; all others cost nothing more.

// spelledDuration reports whether decoding failed because a text stands in place of a duration.
func spelledDuration(err error) bool {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok && e.Value == "string" && e.Type == reflect.TypeFor[time.Duration]()
}

// numberDurations rewrites a JSON text that is to become a v: durations that are texts become numbers. Errors: Invalid,
// naming the field.
func numberDurations(text []byte, v any) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	tree, err := numbered(tree, reflect.TypeOf(v), "")
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(tree)
	return append(out, text[d.InputOffset():]...), err // what is behind the value is refused as ever
}

// numbered returns the tree with the texts of durations as nanoseconds, and changes its maps and lists in place. t
// is the type that the tree will be decoded into; members that it does not have stay as they are. path names the
// field in errors. Errors: Invalid.
func numbered(tree any, t reflect.Type, path string) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var err error
	switch v := tree.(type) {
	case string:
		if t != reflect.TypeFor[time.Duration]() {
			return v, nil
		}
		if v == "" { // as clients write what they were not given
			return 0, nil
		}
		d, err := time.ParseDuration(v)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "%s: %q is no duration: write nanoseconds as a number, or a text such as \"1m30s\"", path, v)
		}
		return int64(d), nil
	case []any:
		if t.Kind() == reflect.Slice {
			for i := range v {
				if v[i], err = numbered(v[i], t.Elem(), path); err != nil {
					return nil, err
				}
			}
		}
	case map[string]any:
		for key, value := range v {
			of, known := memberType(t, key)
			if !known {
				continue
			}
			if v[key], err = numbered(value, of, strings.TrimPrefix(path+"."+key, ".")); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}

// memberType is the type of what an object that becomes a t has under key.
func memberType(t reflect.Type, key string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		fields := reflect.VisibleFields(t)
		i := slices.IndexFunc(fields, func(f reflect.StructField) bool {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			return f.IsExported() && !f.Anonymous && strings.EqualFold(name, key)
		})
		if i >= 0 {
			return fields[i].Type, true
		}
	}
	return nil, false
}
