package clouds

import (
	"maps"
	"slices"
	"strings"
)

// Allowed reports whether Nomad's older options let a node have a thing of a kind (driver, fingerprint): KIND.denylist must not name it,
// and KIND.allowlist must, if it is there. Nomad's former names of both count, too.
func Allowed(options map[string]string, kind, name string) bool {
	deny := listed(options, kind, "denylist", "blacklist")
	allow := listed(options, kind, "allowlist", "whitelist")
	return !slices.Contains(deny, name) && (len(allow) == 0 || slices.Contains(allow, name))
}

// listed reads what the keys of a kind name, with commas between.
func listed(options map[string]string, kind string, keys ...string) (names []string) {
	for _, key := range keys {
		for name := range strings.SplitSeq(options[kind+"."+key], ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Unheeded are the options that have no effect, in their order.
func Unheeded(options map[string]string) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		kind, rest, _ := strings.Cut(key, ".")
		list := rest == "denylist" || rest == "blacklist" || rest == "allowlist" || rest == "whitelist"
		of, enable := strings.CutSuffix(rest, ".enable")
		if (kind != "fingerprint" || !list) && (kind != "driver" || !list && (!enable || of == "")) {
			keys = append(keys, key)
		}
	}
	return keys
}
