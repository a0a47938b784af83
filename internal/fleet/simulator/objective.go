package simulator

import "time"

// Total is what the run is judged by: money, and what waiting is worth at so much an hour of one piece of work.
func (r *Result) Total(waitCost float64) float64 { return r.Cost + r.WaitingCost(waitCost) }

// WaitingCost is what the waiting is worth at so much an hour of one piece of work.
func (r *Result) WaitingCost(waitCost float64) float64 { return waitCost * r.Waited.Hours() }

// MeanWait is how long a task waited on average, again after its machine was lost too.
func (r *Result) MeanWait() time.Duration {
	if r.Tasks == 0 {
		return 0
	}
	return r.Waited / time.Duration(r.Tasks)
}
