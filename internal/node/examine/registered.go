package examine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
)

// again is how old what was found may be when it is asked for: looking costs a program that is started.
const again = 10 * time.Minute

// Registered is what a node registers of its machine.
type Registered struct {
	dir   string
	clock clock.Clock
	look  func(ctx context.Context, dir string) []cluster.Part

	mu    sync.Mutex
	at    time.Time         // guarded by mu
	found map[string]string // guarded by mu
}

// New returns what a node registers whose data lies in dir.
func New(dir string, c clock.Clock) *Registered { return &Registered{dir: dir, clock: c, look: own} }

// On adds what was found, at most ten minutes ago, to a copy of a node's attributes. What changes all the time is not among it, as each
// change is a registration.
func (r *Registered) On(ctx context.Context, attributes map[string]string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); r.found == nil || now.Sub(r.at) >= again {
		r.found, r.at = cluster.PartAttributes(steady(r.look(ctx, r.dir))), now
	}
	return cluster.WithParts(attributes, r.found)
}

// steady leaves the bytes that are free out.
func steady(parts []cluster.Part) []cluster.Part {
	for i := range parts {
		if p := &parts[i]; p.Check == checkOfDisk {
			p.Says = ""
			if p.State != cluster.OK {
				p.Says = fmt.Sprintf("less than %d GiB is free for data", littleDisk>>30)
			}
		}
	}
	return parts
}
