package provider

import (
	"fmt"
	"slices"

	"github.com/drover-project/drover"
)

// Bounds limit a provider whose machines share one real machine.
type Bounds struct {
	Types []string        // that are sold; empty = any
	Max   int             // machines; 0 = no limit
	Room  drover.Capacity // what all machines together may claim; what is 0 has no limit
}

// Sells refuses a type that is not sold. Errors: Config.
func (b Bounds) Sells(typ string) error {
	if len(b.Types) == 0 || slices.Contains(b.Types, typ) {
		return nil
	}
	return &Error{Kind: Config, Message: fmt.Sprintf("no type %q: there are %v", typ, b.Types)}
}

// Admit says whether one more machine may be made beside count others that claim used. Errors: Capacity, Quota of the
// group.
func (b Bounds) Admit(more, used drover.Capacity, count int, group string) error {
	over := func(more, used, room int64) bool { return room > 0 && used+more > room }
	if over(more.CPU, used.CPU, b.Room.CPU) || over(more.MemoryMB, used.MemoryMB, b.Room.MemoryMB) ||
		over(more.DiskMB, used.DiskMB, b.Room.DiskMB) {
		return &Error{Kind: Capacity, Scope: ScopeOffering, Message: "this machine has no room for another of that size"}
	}
	if b.Max > 0 && count >= b.Max {
		return &Error{Kind: Quota, Group: group, Limit: int64(b.Max), Message: fmt.Sprintf("there are %d machines", count)}
	}
	return nil
}

// AgentDefaults is the configuration of an agent on a machine of that size, in HCL: what counts unless its user data
// say otherwise. more are further lines of its client block.
func AgentDefaults(size drover.Capacity, more string) string {
	text := "client {\n  enabled = true\n" + more
	for _, v := range []struct {
		key string
		n   int64
	}{{"cpu_total_compute", size.CPU}, {"memory_total_mb", size.MemoryMB}, {"disk_total_mb", size.DiskMB}} {
		if v.n > 0 {
			text += fmt.Sprintf("  %s = %d\n", v.key, v.n)
		}
	}
	// A daemon is not part of the machine: containers would outlive it.
	return text + "}\nplugin \"docker\" {\n  config {\n    enabled = false\n  }\n}\n"
}

// CheckUserData refuses what can't be an agent's configuration of at most so many bytes. Errors: Config.
func CheckUserData(text string, most int) error {
	switch {
	case len(text) > most:
		return &Error{Kind: Config, Message: fmt.Sprintf("user data: has %d bytes, %d are possible", len(text), most)}
	case len(text) > 1 && text[:2] == "#!":
		return &Error{Kind: Config, Message: "user data: is a script, but this provider's machines want their agent's configuration"}
	}
	return nil
}

// UserDataFile names the file of user data by what is in it.
func UserDataFile(text string) string {
	for _, c := range text {
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '{':
			return "user-data.json"
		}
		break
	}
	return "user-data.hcl"
}
