package admin

import (
	"encoding/base64"
	"strconv"

	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/tenancy"
)

// hashOf is the key of what is used of a limit.
func hashOf(l *tenancy.QuotaLimit) string { return base64.StdEncoding.EncodeToString(l.Hash) }

// amount is how much of one thing a quota allows, and how much is used.
type amount struct {
	name, used, limit string
	share             float64 // that is used; below 0 where nothing can be said
}

// bar shows the share.
func (a amount) bar() html.Part {
	if a.share < 0 {
		return html.Part{}
	}
	return html.El("meter", html.Attr("min", "0"), html.Attr("max", "1"), html.Attr("high", "0.8"), html.Attr("optimum", "0"),
		html.Attr("value", strconv.FormatFloat(min(a.share, 1), 'f', 3, 64)), html.Attr("aria-label", a.name))
}

// amounts are what a limit bounds: nil and 0 bound nothing, and below 0 nothing may be used.
func amounts(limit, used *tenancy.QuotaResources) (out []amount) {
	for _, one := range []struct {
		name        string
		limit, used *int
	}{
		{Text.CPU, limit.CPU, used.CPU},
		{Text.Cores, limit.Cores, used.Cores},
		{Text.Memory, limit.MemoryMB, used.MemoryMB},
		{Text.MemoryMax, limit.MemoryMaxMB, used.MemoryMaxMB},
		{Text.Allocations, limit.Allocations, used.Allocations},
		{Text.Runners, limit.Runners, used.Runners},
		{Text.Executions, limit.Executions, used.Executions},
		{Text.ExecutionCPU, limit.ExecutionCPUSeconds, used.ExecutionCPUSeconds},
		{Text.ExecutionOutput, limit.ExecutionMB, used.ExecutionMB},
	} {
		if one.limit == nil || *one.limit == 0 {
			continue
		}
		a := amount{name: one.name, limit: strconv.Itoa(max(*one.limit, 0)), used: parts.None, share: -1}
		if one.used != nil {
			a.used = strconv.Itoa(*one.used)
		}
		if one.used != nil && *one.limit > 0 {
			a.share = float64(*one.used) / float64(*one.limit)
		}
		out = append(out, a)
	}
	out = append(out, devices(limit.Devices, used.Devices)...)
	if s := limit.Storage; s != nil && s.VariablesMB != 0 {
		a := amount{name: Text.VariablesSize, limit: strconv.Itoa(max(s.VariablesMB, 0)), used: parts.None, share: -1}
		if u := used.Storage; u != nil {
			a.used = strconv.Itoa(u.VariablesMB)
		}
		out = append(out, a)
	}
	if f := limit.FleetPerDay; f != nil && *f != 0 {
		a := amount{name: Text.FleetDay, limit: strconv.FormatFloat(max(*f, 0), 'f', 2, 64), used: parts.None, share: -1}
		if u := used.FleetPerDay; u != nil {
			a.used = strconv.FormatFloat(*u, 'f', 2, 64)
		}
		out = append(out, a)
	}
	return out
}

// devices are amounts of devices.
func devices(limit, used []*tenancy.QuotaDevice) (out []amount) {
	for _, d := range limit {
		if d == nil || d.Count == nil {
			continue
		}
		a := amount{name: d.Name, limit: strconv.FormatUint(*d.Count, 10), used: parts.None, share: -1}
		for _, u := range used {
			if u != nil && u.Name == d.Name && u.Count != nil {
				a.used = strconv.FormatUint(*u.Count, 10)
			}
		}
		out = append(out, a)
	}
	return out
}
