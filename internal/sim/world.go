package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// World is everything that is simulated. Nothing of it is for several goroutines.
type World struct {
	*virtual.World

	ctx context.Context // of the run; handed to real code
	ids *id.Seeded
	log *slog.Logger

	scenario scenario.Scenario
	broken   mutation
	extra    Extra
	disks    []*disk   // of the servers
	servers  []*server // in their newest lives
	quorum   *quorum   // nil: there is one server, which is alone
	net      *network
	lagging  []time.Time     // until when servers lag
	troubled []time.Time     // until when something is wrong with servers
	steps    []time.Duration // how far their clocks are ahead
	nodes    []*node
	clients  *clients
	quiet    bool      // the faults are over
	healed   time.Time // since when
	lossy    bool      // answers of the log get lost
	full     bool      // the log's disk is full, at every server
	stuck    bool      // workers get stuck now and then
	trap     trap
	trapped  [lastTrapPoint + 1]int // how often the server died at each point
	last     lastSeen
}
