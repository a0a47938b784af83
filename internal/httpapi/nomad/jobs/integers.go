package jobs

import (
	"math"

	"github.com/drover-project/drover"
)

// restoreIntegers makes int64 of the whole numbers in free-form parts, since JSON has only one kind of number.
// Thereby a job from HCL and the same job from JSON are equal.
func restoreIntegers(j *drover.Job) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		if g.Scaling != nil {
			integers(g.Scaling.Policy)
		}
		for _, t := range g.Tasks {
			if t != nil {
				integers(t.Config)
			}
		}
	}
}

// integers returns v with its whole numbers as int64, and changes maps and lists in place. Numbers from 2^53 on
// stay float64, because JSON's decoder may have rounded them already.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}
