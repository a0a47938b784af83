package fleet

import "time"

// Check asks for one machine of a pool to be bought, looked at and returned.
type Check struct {
	Pool   string
	Type   string        // default the cheapest
	Zone   string        // default the first
	Market string        // MarketOnDemand (default) or MarketSpot
	Listen string        // host:port where the machine's agent is awaited; default fleet.server's host and a free port
	Dial   string        // host:port that the machine dials; default Listen
	Within time.Duration // from the create until the agent calls; default the pool's boot timeout
	Keep   bool          // leave the machine running
	// Policy is the pool's if it was made over the API; nil: it is in the configuration.
	Policy *Policy
}

// CheckStep is a step of the check that is done, or failed.
type CheckStep struct {
	Name  string
	Says  string
	Took  time.Duration
	Error string // "" = done
}
