package sim

import (
	"slices"

	"github.com/drover-project/drover/internal/sim/scenario"
)

// Shrink returns a smaller scenario that still breaks something, by leaving out steps: first halves, then less. It runs
// at most tries scenarios.
func Shrink(s scenario.Scenario, tries int, run func(scenario.Scenario) Result) scenario.Scenario {
	for size := max(1, len(s.Steps)/2); size >= 1 && tries > 0; {
		smaller := false
		for from := 0; from < len(s.Steps) && tries > 0; {
			try := s
			try.Steps = slices.Delete(slices.Clone(s.Steps), from, min(from+size, len(s.Steps)))
			tries--
			if run(try).Failure != "" {
				s, smaller = try, true
			} else {
				from += size
			}
		}
		if size == 1 && !smaller {
			break
		}
		size = max(1, size/2)
	}
	return s
}
