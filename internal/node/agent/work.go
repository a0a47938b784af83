package agent

// Work returns how many allocations have not ended.
func (a *Agent) Work() int {
	n := 0
	for _, r := range a.runners() {
		if !r.View().Ended() {
			n++
		}
	}
	return n
}
