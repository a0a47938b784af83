package rights

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/policy"
)

// stupid answers questions by looking at all rules of all policies each time, with regular expressions.
type stupid []*policy.Rules

// labelled is a rule with its labels: one, or those of a namespace and of a path.
type labelled struct {
	labels []string
	set    uint64
}

const deny = uint64(policy.Set[policy.Capability](1 << 63))

func literal(labels []string) (n int) {
	for _, l := range labels {
		n += len(strings.ReplaceAll(l, "*", ""))
	}
	return n
}

func fits(labels, names []string) bool {
	for i, l := range labels {
		text := "^" + strings.ReplaceAll(regexp.QuoteMeta(l), `\*`, `(?s:.*)`) + "$"
		if !regexp.MustCompile(text).MatchString(names[i]) {
			return false
		}
	}
	return true
}

// decide merges rules with equal labels and returns the set of the one that holds.
func decide(rules []labelled, names ...string) uint64 {
	merged := map[string]*labelled{}
	for _, r := range rules {
		key := strings.Join(r.labels, "\x00")
		if merged[key] == nil {
			merged[key] = &labelled{labels: r.labels}
		}
		merged[key].set |= r.set
	}
	if r := merged[strings.Join(names, "\x00")]; r != nil {
		return r.set
	}
	best := ""
	for key, r := range merged {
		if !fits(r.labels, names) {
			continue
		}
		b := merged[best]
		switch {
		case b == nil || literal(r.labels) > literal(b.labels):
			best = key
		case literal(r.labels) < literal(b.labels):
		case r.set&deny != b.set&deny:
			if r.set&deny != 0 {
				best = key
			}
		case key < best:
			best = key
		}
	}
	if merged[best] == nil {
		return 0
	}
	return merged[best].set
}

func (s stupid) namespaces() (out []labelled) {
	for _, p := range s {
		for label, ns := range p.Namespaces {
			out = append(out, labelled{[]string{label}, uint64(ns.Capabilities)})
		}
	}
	return out
}

func (s stupid) variables() (out []labelled) {
	for _, p := range s {
		for label, ns := range p.Namespaces {
			for path, set := range ns.Variables {
				out = append(out, labelled{[]string{label, path}, uint64(set)})
			}
		}
	}
	return out
}

func has(set uint64, bit uint8) bool { return set&deny == 0 && set&(1<<bit) != 0 }

// drawPolicy writes a policy over few letters, so that labels meet and globs match.
func drawPolicy(t *rapid.T) string {
	label := rapid.StringMatching(`[ab*]{1,4}`)
	path := rapid.StringMatching(`[pq*]{1,3}`)
	word := rapid.SampledFrom([]string{"deny", "read", "write", "scale"})
	capability := rapid.SampledFrom([]string{"submit-job", "read-job", "list-jobs", "read-fs", "execute", "deny"})
	variable := rapid.SampledFrom([]string{"list", "read", "write", "destroy", "deny"})
	level := rapid.SampledFrom([]string{"deny", "read", "write"})
	var b strings.Builder
	for range rapid.IntRange(1, 4).Draw(t, "namespaces") {
		fmt.Fprintf(&b, "namespace %q {\n", label.Draw(t, "label"))
		if rapid.Bool().Draw(t, "coarse") {
			fmt.Fprintf(&b, "policy = %q\n", word.Draw(t, "policy"))
		}
		fmt.Fprintf(&b, "capabilities = [%q]\n", capability.Draw(t, "capability"))
		if n := rapid.IntRange(0, 3).Draw(t, "paths"); n > 0 {
			b.WriteString("variables {\n")
			for range n {
				fmt.Fprintf(&b, "path %q { capabilities = [%q] }\n", path.Draw(t, "path"), variable.Draw(t, "variable"))
			}
			b.WriteString("}\n")
		}
		b.WriteString("}\n")
	}
	for range rapid.IntRange(0, 3).Draw(t, "pools") {
		fmt.Fprintf(&b, "node_pool %q { policy = %q }\n", label.Draw(t, "pool"), level.Draw(t, "level"))
		fmt.Fprintf(&b, "host_volume %q { policy = %q }\n", label.Draw(t, "volume"), level.Draw(t, "level"))
	}
	for _, part := range []string{"agent", "node", "operator", "quota", "plugin", "fleet"} {
		if rapid.IntRange(0, 2).Draw(t, part) == 0 {
			fmt.Fprintf(&b, "%s { policy = %q }\n", part, level.Draw(t, "level"))
		}
	}
	return b.String()
}

// TestRightsAgainstTheModel compares random policies and questions.
func TestRightsAgainstTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var s stupid
		for range rapid.IntRange(0, 4).Draw(rt, "policies") {
			text := drawPolicy(rt)
			p, err := policy.Parse(text)
			require.NoError(rt, err, text)
			s = append(s, p)
		}
		r := Compile(s...)
		namespaces, variables := s.namespaces(), s.variables()
		for range 20 {
			ns := rapid.StringMatching(`[abc]{1,5}`).Draw(rt, "namespace")
			path := rapid.StringMatching(`[pqr]{1,4}`).Draw(rt, "path")
			set := decide(namespaces, ns)
			for _, c := range policy.Capabilities() {
				require.Equal(rt, has(set, uint8(c)), r.Namespace(ns, c), "%s in %s", c, ns)
			}
			require.Equal(rt, set != 0 && set&deny == 0, r.SeesNamespace(ns))
			of := decide(variables, ns, path)
			for _, c := range []policy.VariableCapability{policy.ListVariables, policy.ReadVariable, policy.WriteVariable, policy.DestroyVariable} {
				require.Equal(rt, set&deny == 0 && has(of, uint8(c)), r.Variable(ns, path, c), "%s of %s in %s", c, path, ns)
			}
			s.named(rt, r, ns)
		}
		s.parts(rt, r)
	})
}

func (s stupid) named(t *rapid.T, r *Rights, name string) {
	var pools, volumes []labelled
	for _, p := range s {
		for label, set := range p.NodePools {
			pools = append(pools, labelled{[]string{label}, uint64(set)})
		}
		for label, set := range p.HostVolumes {
			volumes = append(volumes, labelled{[]string{label}, uint64(set)})
		}
	}
	for _, c := range []policy.PoolCapability{policy.ReadPool, policy.WritePool, policy.DeletePool} {
		require.Equal(t, has(decide(pools, name), uint8(c)), r.NodePool(name, c))
	}
	for _, c := range []policy.VolumeCapability{policy.MountReadOnly, policy.MountReadWrite} {
		require.Equal(t, has(decide(volumes, name), uint8(c)), r.HostVolume(name, c))
	}
}

func (s stupid) parts(t *rapid.T, r *Rights) {
	for part := range policy.Parts {
		highest, denied := policy.None, false
		for _, p := range s {
			denied = denied || p.Parts[part] == policy.Deny
			highest = max(highest, p.Parts[part])
		}
		for _, need := range []policy.Level{policy.List, policy.Read, policy.Write} {
			require.Equal(t, !denied && highest >= need, r.Part(part, need), "%s of %s", need, part)
		}
	}
}
