package command

import "drover"

// wirePlans is ApplyPlans as it is encoded: what the allocations of a plan share is written once, and is shared again
// after decoding.
type wirePlans struct {
	Plans []wirePlan
	Evals []*drover.Evaluation
	Time  int64
}

type wirePlan struct {
	Commit    PlanCommit
	Resources []*drover.AllocatedResources
	Metrics   []*drover.AllocationMetric
	Refs      []wireRef // of Commit.Placed
}

// wireRef holds numbers + 1 of the lists above; 0 = none.
type wireRef struct{ R, M int }

func packPlans(c *ApplyPlans) *wirePlans {
	w := &wirePlans{Plans: make([]wirePlan, len(c.Plans)), Evals: c.Evals, Time: c.Time}
	for i := range c.Plans {
		w.Plans[i] = packPlan(c.Plans[i])
	}
	return w
}

func packPlan(c PlanCommit) wirePlan {
	w := wirePlan{Refs: make([]wireRef, len(c.Placed))}
	resources, metrics := map[*drover.AllocatedResources]int{}, map[*drover.AllocationMetric]int{}
	placed := make([]*drover.Allocation, len(c.Placed))
	for i, a := range c.Placed {
		bare := *a
		w.Refs[i] = wireRef{number(resources, &w.Resources, a.AllocatedResources), number(metrics, &w.Metrics, a.Metrics)}
		bare.Job, bare.AllocatedResources, bare.Metrics = nil, nil, nil
		placed[i] = &bare
	}
	c.Placed = placed
	w.Commit = c
	return w
}

func number[T any](seen map[*T]int, list *[]*T, v *T) int {
	if v == nil {
		return 0
	}
	if seen[v] == 0 {
		*list = append(*list, v)
		seen[v] = len(*list)
	}
	return seen[v]
}

func (w *wirePlans) unpack() (*ApplyPlans, error) {
	c := &ApplyPlans{Plans: make([]PlanCommit, len(w.Plans)), Evals: w.Evals, Time: w.Time}
	for i := range w.Plans {
		p := &w.Plans[i]
		if len(p.Refs) != len(p.Commit.Placed) {
			return nil, drover.Errorf(drover.Invalid, "decoding plans: %d references for %d allocations", len(p.Refs), len(p.Commit.Placed))
		}
		for j, a := range p.Commit.Placed {
			ref := p.Refs[j]
			if a == nil || ref.R < 0 || ref.R > len(p.Resources) || ref.M < 0 || ref.M > len(p.Metrics) {
				return nil, drover.Errorf(drover.Invalid, "decoding plans: an allocation that points nowhere")
			}
			if ref.R > 0 {
				a.AllocatedResources = p.Resources[ref.R-1]
			}
			if ref.M > 0 {
				a.Metrics = p.Metrics[ref.M-1]
			}
		}
		c.Plans[i] = p.Commit
	}
	return c, nil
}
