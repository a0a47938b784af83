package runner

import (
	"cmp"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Pools returns how all environments' pools stand, sorted by id: sizes, warm and claimed runners and waiting claims.
func (c *Core) Pools() []execution.PoolStatus {
	pools := make([]execution.PoolStatus, 0, len(c.envs))
	for _, id := range slices.Sorted(maps.Keys(c.envs)) {
		pools = append(pools, c.envs[id].status())
	}
	return pools
}

// Pool returns how one pool stands, as Pools. Errors: NotFound.
func (c *Core) Pool(environmentID string) (execution.PoolStatus, error) {
	e := c.envs[environmentID]
	if e == nil {
		return execution.PoolStatus{}, noEnvironment(environmentID)
	}
	return e.status(), nil
}

// Warm is how many runners of an environment this server can hand out at once.
func (c *Core) Warm(environmentID string) int {
	if e := c.envs[environmentID]; e != nil {
		return e.warm.Len()
	}
	return 0
}

// status counts from the core's own books, which events bring up to date, not from the state.
func (e *env) status() execution.PoolStatus {
	return execution.PoolStatus{
		Environment: e.ID, Namespace: e.Namespace, Size: e.PoolSize, Warm: e.warm.Len() + e.elsewhere.warm,
		Claimed: e.claimed + e.elsewhere.claimed,
		Waiting: e.waiters.Len(),
	}
}

// Runners lists warm and claimed runners, of one environment or (with "") of all, sorted by id. Errors: NotFound.
func (c *Core) Runners(environmentID string) ([]execution.Runner, error) {
	if environmentID != "" && c.envs[environmentID] == nil {
		return nil, noEnvironment(environmentID)
	}
	runners := []execution.Runner{}
	for _, known := range []map[string]*runner{c.runners, c.elsewhere} {
		for _, r := range known {
			if environmentID == "" || r.env == environmentID {
				runners = append(runners, r.public())
			}
		}
	}
	slices.SortFunc(runners, func(a, b execution.Runner) int { return cmp.Compare(a.ID, b.ID) })
	return runners, nil
}

// Kept lists the ids of claimed runners that no other server keeps, sorted.
func (c *Core) Kept() (ids []string) {
	for _, r := range c.runners {
		if r.claim != nil {
			ids = append(ids, r.claim.RunnerID)
		}
	}
	slices.Sort(ids)
	return ids
}

// census counts the warm runners of the present and of older specifications, beside the wanted size.
type census struct{ current, old, size int }

// census counts the runners of an environment, whose job as it is now is given. Errors: NotFound.
func (c *Core) census(environmentID string, job *drover.Job) (now census, err error) {
	e := c.envs[environmentID]
	if e == nil || job == nil {
		return now, noEnvironment(environmentID)
	}
	now.size = e.PoolSize
	for _, known := range []map[string]*runner{c.runners, c.elsewhere} {
		for _, r := range known {
			switch {
			case r.env != environmentID || r.claim != nil:
			case sameRunner(r.alloc.Job, job):
				now.current++
			default:
				now.old++
			}
		}
	}
	return now, nil
}
