package command

import "github.com/drover-project/drover"

// wirePlans is ApplyPlans as it is encoded: what the allocations of a plan share is written once, and is shared again
// after decoding.
type wirePlans struct {
	Plans []wirePlan
	Evals []*drover.Evaluation
	Time  int64
}

type wirePlan struct {
	Commit    PlanCommit // Placed: of version 1 only
	Resources []*drover.AllocatedResources
	Metrics   []*drover.AllocationMetric
	Refs      []wireRef // of the allocations placed
	Placed    [][]byte  // since version 2: the records of AppendAllocation
}

// wireRef holds numbers + 1 of the lists above; 0 = none.
type wireRef struct{ R, M int }

func packPlans(c *ApplyPlans) (*wirePlans, error) {
	w := &wirePlans{Plans: make([]wirePlan, len(c.Plans)), Evals: c.Evals, Time: c.Time}
	for i := range c.Plans {
		var err error
		if w.Plans[i], err = packPlan(c.Plans[i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// usualRecord is what an allocation that is placed usually takes, in bytes.
const usualRecord = 256

func packPlan(c PlanCommit) (wirePlan, error) {
	w := wirePlan{Refs: make([]wireRef, len(c.Placed)), Placed: make([][]byte, len(c.Placed))}
	resources, metrics := map[*drover.AllocatedResources]int{}, map[*drover.AllocationMetric]int{}
	buf := make([]byte, 0, len(c.Placed)*usualRecord)
	for i, a := range c.Placed {
		w.Refs[i] = wireRef{number(resources, &w.Resources, a.AllocatedResources), number(metrics, &w.Metrics, a.Metrics)}
		at := len(buf)
		var err error
		if buf, err = AppendAllocation(buf, a); err != nil {
			return w, err
		}
		w.Placed[i] = buf[at:len(buf):len(buf)]
	}
	c.Placed = nil
	w.Commit = c
	return w, nil
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

func (w *wirePlans) unpack(in *Interner) (*ApplyPlans, error) {
	c := &ApplyPlans{Plans: make([]PlanCommit, len(w.Plans)), Evals: w.Evals, Time: w.Time}
	for i := range w.Plans {
		p := &w.Plans[i]
		for _, record := range p.Placed {
			a, err := DecodeAllocation(record, in)
			if err != nil {
				return nil, err
			}
			p.Commit.Placed = append(p.Commit.Placed, a)
		}
		if err := p.refer(); err != nil {
			return nil, err
		}
		c.Plans[i] = p.Commit
	}
	return c, nil
}

// refer makes the allocations point to what they share.
func (w *wirePlan) refer() error {
	if len(w.Refs) != len(w.Commit.Placed) {
		return drover.Errorf(drover.Invalid, "decoding plans: %d references for %d allocations", len(w.Refs), len(w.Commit.Placed))
	}
	for j, a := range w.Commit.Placed {
		ref := w.Refs[j]
		if a == nil || ref.R < 0 || ref.R > len(w.Resources) || ref.M < 0 || ref.M > len(w.Metrics) {
			return drover.Errorf(drover.Invalid, "decoding plans: an allocation that points nowhere")
		}
		if ref.R > 0 {
			a.AllocatedResources = w.Resources[ref.R-1]
		}
		if ref.M > 0 {
			a.Metrics = w.Metrics[ref.M-1]
		}
	}
	return nil
}
