package feasible

import (
	"cmp"
	"strings"

	"github.com/drover-project/drover"
)

// Resolve returns what a constraint's target says on a node: ${node.…}, ${attr.…}, ${meta.…}, or the text itself.
// It reports false for an attribute that the node does not have.
func Resolve(n *drover.Node, target string) (string, bool) {
	if !strings.HasPrefix(target, "${") || !strings.HasSuffix(target, "}") {
		return target, true
	}
	return n.Lookup(target[2 : len(target)-1])
}

// isUnique reports whether a target may differ between nodes of one computed class, so that what it decides cannot be
// remembered for the class.
func isUnique(target string) bool {
	return strings.HasPrefix(target, "${") && strings.Contains(target, "unique.")
}

// glob matches s against a pattern in which * stands for any text.
func glob(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], next
	}
}

// matchesAny reports whether s matches one of the patterns; no patterns match everything.
func matchesAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if glob(p, s) {
			return true
		}
	}
	return len(patterns) == 0
}

// InDatacenter reports whether the job may use nodes of the datacenter. Its list may have patterns with *.
func InDatacenter(job *drover.Job, datacenter string) bool {
	return matchesAny(job.Datacenters, datacenter)
}

// InPool reports whether the job may use nodes of n's node pool. No name means the default pool.
func InPool(job *drover.Job, n *drover.Node) bool {
	return job.NodePool == drover.AllNodePool ||
		cmp.Or(job.NodePool, drover.DefaultNodePool) == cmp.Or(n.NodePool, drover.DefaultNodePool)
}
