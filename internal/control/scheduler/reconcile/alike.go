package reconcile

import "reflect"

// alike is deep equality for which an empty map or list is as good as none, and 1 equals 1.0: values that travelled
// through JSON or the log differ in just that.
func alike(a, b reflect.Value) bool {
	a, b = inner(a), inner(b)
	switch {
	case hollow(a) || hollow(b):
		return hollow(a) && hollow(b)
	case a.CanConvert(floatType) && b.CanConvert(floatType):
		return a.Convert(floatType).Float() == b.Convert(floatType).Float()
	case a.Kind() != b.Kind():
		return false
	}
	switch a.Kind() {
	case reflect.Struct:
		return a.Type() == b.Type() && alikeFields(a, b)
	case reflect.Map:
		return alikeMaps(a, b)
	case reflect.Slice, reflect.Array:
		return alikeLists(a, b)
	}
	return a.Equal(b)
}

var floatType = reflect.TypeFor[float64]()

// inner follows pointers and interfaces to what they hold; a nil one is returned as it is.
func inner(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// alikeFields compares two structs of one type field by field.
func alikeFields(a, b reflect.Value) bool {
	for i := range a.NumField() {
		if !alike(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

// alikeLists compares in order: the order of arguments and ports has a meaning.
func alikeLists(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !alike(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

// alikeMaps compares maps by their keys. A key with an empty value differs from a key that is not there.
func alikeMaps(a, b reflect.Value) bool {
	if a.Len() != b.Len() || a.Type().Key() != b.Type().Key() {
		return false
	}
	for it := a.MapRange(); it.Next(); {
		other := b.MapIndex(it.Key())
		if !other.IsValid() || !alike(it.Value(), other) {
			return false
		}
	}
	return true
}

// hollow reports whether a value is absent, or an empty map or list.
func hollow(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	}
	return false
}
