package servicecheck

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/service"
)

// Of returns the checks of a service. One that cannot be read, which Faults reports, is left out.
func Of(s *service.Service) (out []*Check) {
	for _, m := range s.Checks {
		if c, err := read(m); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// hclNames are the names of a check's fields in job files, which older programs stored, where they differ by more than
// their case.
var hclNames = map[string]string{"port": "PortLabel", "task": "TaskName"}

// read reads a check under the names of the API or of job files. Durations may be texts.
func read(m map[string]any) (*Check, error) {
	plain := map[string]any{}
	for k, v := range m {
		name := strings.ReplaceAll(k, "_", "")
		if api, other := hclNames[k]; other {
			name = api
		}
		switch strings.ToLower(name) {
		case "interval", "timeout":
			v = nanoseconds(v)
		case "checkrestart":
			v = plainRestart(v)
		case "header":
			if list, ok := v.([]any); ok && len(list) == 1 {
				v = list[0]
			}
		}
		plain[name] = v
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	c := new(Check)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, drover.Errorf(drover.Invalid, "%w", err)
	}
	return c, nil
}

// plainRestart reads a check_restart block in either form.
func plainRestart(v any) any {
	if list, ok := v.([]any); ok && len(list) == 1 {
		v = list[0]
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, v := range m {
		if strings.EqualFold(k, "grace") {
			v = nanoseconds(v)
		}
		out[strings.ReplaceAll(k, "_", "")] = v
	}
	return out
}

// nanoseconds makes a number of a duration's text; anything else stays.
func nanoseconds(v any) any {
	if s, ok := v.(string); ok {
		if d, err := time.ParseDuration(s); err == nil {
			return int64(d)
		}
	}
	return v
}

// Map is the check as a Service has it: under the names of the API, with whole numbers as int64.
func (c *Check) Map() map[string]any {
	m := map[string]any{}
	text, _ := json.Marshal(c) // it has nothing that JSON does not know
	_ = json.Unmarshal(text, &m)
	return integers(m).(map[string]any)
}

// integers returns v with its whole numbers as int64: JSON has one kind of number.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for _, k := range slices.Collect(maps.Keys(v)) {
			v[k] = integers(v[k])
		}
	}
	return v
}
