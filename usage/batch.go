package usage

// MostInBatch is how many allocations are sampled at once.
const MostInBatch = 100

// Samples are those of several allocations, by their ids.
type Samples struct {
	Allocations map[string]*AllocResourceUsage
	// Missing says of those without a sample why there is none.
	Missing map[string]string `json:",omitempty"`
}
