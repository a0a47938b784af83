package fleet

import (
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/openapi"
)

// The bounds of a simulation that a server does: it has work of its own. The command line has none.
const (
	simulateWithin = 10 * time.Second
	simulatedTasks = 200_000
	simulatedTrace = 4 << 20 // bytes
)

const simulatePattern = "POST /v1/fleet/simulate"

// simulation is the route of simulations.
func (f *Face) simulation() operation {
	return operation{openapi.Operation{
		Pattern: simulatePattern, Summary: "Try a pool's policy on a workload, on virtual time: nothing is bought, and nothing is kept",
		In: fleet.Simulation{}, Out: []fleet.Simulated{}, Status: http.StatusOK,
	}, f.simulate}
}

// simulate tries a policy on virtual time, one at a time.
func (f *Face) simulate(w http.ResponseWriter, r *http.Request) error {
	var ask fleet.Simulation
	if err := httpapi.DecodeStrictJSON(r, &ask); err != nil {
		return err
	}
	tasks := ask.PerHour
	if ask.Workload != "burst" {
		length, perHour := ask.Length, ask.PerHour
		if length == 0 {
			length = 24 * time.Hour
		}
		if perHour == 0 {
			perHour = 600
		}
		tasks = perHour * length.Hours()
	}
	const local = "; `drover fleet simulate` has no such bound"
	switch {
	case f.Simulate == nil:
		return drover.Errorf(drover.NotImplemented, "this program has no simulator")
	case ask.Policy == nil:
		return drover.Errorf(drover.Invalid, "Policy: missing")
	case ask.PerHour < 0 || ask.Length < 0 || ask.Run < 0 || ask.Boot < 0 || ask.Faults < 0 || ask.Faults > 1:
		return drover.Errorf(drover.Invalid, "PerHour, Length, Run and Boot must not be negative, and Faults is from 0 to 1")
	case tasks > simulatedTasks:
		return drover.Errorf(drover.Invalid, "PerHour and Length: about %.0f tasks are too many for a server, which does %d at most"+local,
			tasks, simulatedTasks)
	case len(ask.Trace) > simulatedTrace:
		return drover.Errorf(drover.Invalid, "Trace: it is longer than %d bytes"+local, simulatedTrace)
	}
	if !f.simulating.TryLock() {
		return drover.Errorf(drover.RateLimited, "this server does another simulation: one at a time")
	}
	defer f.simulating.Unlock()
	ask.Policy.Canonicalize()
	ctx, cancel := f.Clock.WithTimeout(r.Context(), simulateWithin)
	defer cancel()
	list, err := f.Simulate(ctx, ask)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return drover.Errorf(drover.Invalid, "PerHour and Length: it takes longer than %v to simulate"+local, simulateWithin)
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, list)
}
