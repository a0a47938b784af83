package rendering

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/service"
)

// The values that templates get have the fields of consul-template's. Their methods are called by methods.go.

// nanoTime prints as a time.
type nanoTime int64

// String returns the time as Go prints it.
func (t nanoTime) String() string { return time.Unix(0, int64(t)).String() }

// meta is what is known of a variable without its items.
type meta struct {
	Namespace, Path          string
	CreateIndex, ModifyIndex uint64
	CreateTime, ModifyTime   nanoTime
}

// String returns the path.
func (m meta) String() string { return m.Path }

func newMeta(v secrets.VariableMetadata) *meta {
	return &meta{v.Namespace, v.Path, v.CreateIndex, v.ModifyIndex, nanoTime(v.CreateTime), nanoTime(v.ModifyTime)}
}

// variable is a variable.
type variable struct {
	meta
	Items items
}

// items are a variable's items by their names.
type items map[string]item

// item is one; it prints as its value.
type item struct {
	Key, Value string
	of         *variable
}

// String returns the value.
func (i item) String() string { return i.Value }

// MarshalJSON returns the value as JSON's text.
func (i item) MarshalJSON() ([]byte, error) { return json.Marshal(i.Value) }

func newVariable(v *secrets.Variable) *variable {
	out := &variable{meta: *newMeta(v.VariableMetadata), Items: items{}}
	for k, value := range v.Items {
		out.Items[k] = item{k, value, out}
	}
	return out
}

func (v items) keys() []string {
	return slices.Sorted(maps.Keys(v))
}

// of returns the variable whose items these are; nil if there are none.
func (v items) of() *variable {
	for _, i := range v {
		return i.of
	}
	return nil
}

// tuple is an item without its way back.
type tuple struct{ K, V string }

// tags are a service's, in order.
type tags []string

func sorted(list []string) tags { return slices.Sorted(slices.Values(list)) }

// serviceValue is a registration.
type serviceValue struct {
	ID, Name, Node, Address string
	Port                    int
	Datacenter              string
	Tags                    tags
	JobID, AllocID          string
}

// snippet is a service in short.
type snippet struct {
	Name string
	Tags tags
}

// services are the registrations that have the tag; "" = all.
func services(list []*service.Registration, tag string) []*serviceValue {
	out := []*serviceValue{}
	for _, s := range list {
		if tag == "" || slices.Contains(s.Tags, tag) {
			out = append(out, &serviceValue{s.ID, s.ServiceName, s.NodeID, s.Address, s.Port, s.Datacenter, sorted(s.Tags), s.JobID, s.AllocID})
		}
	}
	return out
}

// scratch keeps what a template puts aside.
type scratch map[string]any

func (s scratch) mapSet(key, of string, v any, replace bool) error {
	if s[key] == nil {
		s[key] = map[string]any{}
	}
	m, ok := s[key].(map[string]any)
	if !ok {
		return drover.Errorf(drover.Invalid, "%q is not a map", key)
	}
	if _, has := m[of]; replace || !has {
		m[of] = v
	}
	return nil
}

func (s scratch) mapValues(key string) []any {
	m, _ := s[key].(map[string]any)
	out := make([]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}
