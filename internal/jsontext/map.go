package jsontext

import (
	"maps"
	"slices"
)

// AppendMap appends the map as a JSON object with its keys in order; a nil map is null.
func AppendMap(to []byte, m map[string]string) []byte {
	if m == nil {
		return append(to, "null"...)
	}
	if len(m) == 0 {
		return append(to, "{}"...)
	}
	before := byte('{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		to = AppendString(append(to, before), key)
		to = AppendString(append(to, ':'), m[key])
		before = ','
	}
	return append(to, '}')
}
