package usage

import "time"

// PastStep is how long each number of a Past holds, and PastSpan how far back one goes at most.
const (
	PastStep = 5 * time.Second
	PastSpan = 30 * time.Minute
)

// Past is what an allocation or a node used, as far as somebody looked: nobody samples what nobody asks for.
type Past struct {
	From   time.Time     // when the first step began
	Step   time.Duration // ns, of each number
	CPU    []float64     // percent: of a core for an allocation, of all cores for a node; -1: nobody looked
	Memory []int64       // bytes; -1: nobody looked
	Why    string        `json:",omitempty"` // why there is no sample of now
}
