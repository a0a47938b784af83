package fleet

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
)

// Application asks that the pools of the configuration become those of a file. Pools that were made over the API stay, unless
// the file has one of that name.
type Application struct {
	Pools   []*Policy // nil = those of the asked server's configuration, as its file is now
	Preview bool      // change nothing, only say what would change
	Version uint64    // of the pools as the caller saw them; another one is a conflict; 0 = whatever it is
}

// Applied says what a file changes.
type Applied struct {
	Server  string   // that answers
	Version uint64   // of the pools: with a preview those before, else those after
	Changes []Change // none: the pools are what the file says
	Applied bool     // they were made
}

// Change is what a file makes of a pool.
type Change struct {
	Pool     string
	What     string      // ChangeAdd and so on
	Keys     []KeyChange // of the policy, for ChangeKeys
	Machines int         // that the pool has
	Replaces bool        // they are replaced as they become idle: they would be made differently
}

// What becomes of a pool.
const (
	ChangeAdd    = "add"
	ChangeKeys   = "change"
	ChangeRetire = "retire" // it buys nothing more, and is gone with its last machine
)

// KeyChange is a key of a policy that gets another value. Values are JSON, "" where the key is not set; those that may hold
// secrets are not shown.
type KeyChange struct{ Key, Now, Next string }

// PoolsVersion is the index of the newest change of a pool; 0 without pools.
func PoolsVersion(pools iter.Seq[*Pool]) (version uint64) {
	for p := range pools {
		version = max(version, p.ModifyIndex)
	}
	return version
}

// Differences are the keys in which two policies differ, in the order of their names. What is empty is as what is not set.
func Differences(now, next *Policy) []KeyChange {
	a, b := flat(now), flat(next)
	var out []KeyChange
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if a[key] != b[key] {
			out = append(out, shown(key, a[key], b[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, both := a[key]; !both {
			out = append(out, shown(key, "", b[key]))
		}
	}
	return out
}

// shown hides what may be secret: the user data of machines.
func shown(key, now, next string) KeyChange {
	if key == "UserData" {
		now, next = hidden(now), hidden(next)
	}
	return KeyChange{key, now, next}
}

func hidden(value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("(%d bytes)", len(value))
}

// flat is the policy's values by their paths, such as Types[0].Price, without those that are empty.
func flat(p *Policy) map[string]string {
	out := map[string]string{}
	text, err := json.Marshal(p)
	var value any
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil { // plain values
		return map[string]string{"": err.Error()}
	}
	flatten(out, "", value)
	return out
}

func flatten(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			next := key
			if path != "" {
				next = path + "." + key
			}
			flatten(out, next, one)
		}
	case []any:
		for i, one := range v {
			flatten(out, path+"["+strconv.Itoa(i)+"]", one)
		}
	case nil:
	default:
		if text, _ := json.Marshal(v); v != "" && v != 0.0 && v != false { // a plain value
			out[path] = string(text)
		}
	}
}
