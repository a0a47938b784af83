package grouped

import "github.com/drover-project/drover/internal/node/cgroup"

// Members lists a group's processes, of a group that may be removed meanwhile; nil has none.
func Members(group *cgroup.Group) func() []int {
	return func() []int {
		if group == nil {
			return nil
		}
		pids, err := group.Procs()
		if err != nil {
			return nil
		}
		return pids
	}
}
