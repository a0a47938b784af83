package trial

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
)

// State says how a hostile program fared.
type State string

// The states.
const (
	Contained State = "contained" // it got nowhere
	Weak      State = "weak"      // it got nowhere, but what held it is weaker than it could be
	Escaped   State = "escaped"   // it got what it must not get, or hurt others
	NotTried  State = "not tried"
)

// Finding is one line of the result.
type Finding struct {
	// Program is the text that names the attack; Config.Loose uses it as a key.
	Program string
	State   State
	// Says is a sentence for people: what held the program, or what it got.
	Says string
}

// Config of a trial.
type Config struct {
	Driver driver.Driver
	// Dir is an empty folder of ours. Everything that the trial makes lies in it.
	Dir   string
	Clock clock.Clock
	// Groups lists the control groups of Driver's tasks; nil: it has none, and limits are kept by weaker means.
	Groups func() ([]string, error)
	// Task is the guests' configuration; nil: a sandbox of the host image.
	Task map[string]any
	// Group is what the control groups of a guest are named after; nil: its allocation.
	Group func(driver.State) string
	// MemoryMB is the size of a guest; default 64. A kernel of its own needs more.
	MemoryMB int64
	// Network, if not nil, is what a guest has with network mode bridge.
	Network *Network
	// Loose says, by program, what such guests get by design: that is told as weak.
	Loose map[string]string
}

// The size of the sandboxes, and the patience with one program.
const (
	// MB. It is enough for a shell, and little enough for the memory bomb to reach it soon.
	memoryMB = 64 // unless the configuration says otherwise
	diskMB   = 16
	pids     = 64
	// patience bounds one program; shortWall is the time limit of programs that never end by themselves.
	patience  = 20 * time.Second
	shortWall = 700 * time.Millisecond
)

// trial is one run.
type trial struct {
	cfg       Config
	token     string // in the names and arguments of all that we start
	secret    string // a file of the machine that no guest may read
	evil      *guest
	neighbour *guest
	findings  []Finding
	ownKernel bool // the guests', as gVisor's: see kernel.go
	lives     int  // of evil, that were used up
}

// Run tries all programs, then counts what is left on the machine. The error says why no sandbox could be started; the
// findings up to then are returned with it.
func Run(ctx context.Context, cfg Config) ([]Finding, error) {
	cfg.MemoryMB = cmp.Or(cfg.MemoryMB, memoryMB)
	t := &trial{cfg: cfg, token: "trial-" + id.Random{}.New()}
	t.secret = filepath.Join(cfg.Dir, "secret")
	if err := os.WriteFile(t.secret, []byte(t.token), 0o600); err != nil {
		return nil, fmt.Errorf("preparing the trial: %w", err)
	}
	err := t.all(ctx)
	return t.findings, err
}

// all runs every program in turn against one guest, beside a neighbour that must not notice. The order matters: greedy
// programs come after those that only look, and the survivors' test destroys both guests.
func (t *trial) all(ctx context.Context) (err error) {
	if t.neighbour, err = t.start(ctx, "neighbour"); err != nil {
		return err
	}
	if t.evil, err = t.start(ctx, "evil"); err != nil {
		t.neighbour.destroy(ctx)
		return err
	}
	t.ownKernel = t.evil.hasOwnKernel(ctx)
	for _, p := range slices.Concat(refusals(), exposures(), greedy(), escapes()) {
		state, says := t.try(ctx, p)
		t.findings = append(t.findings, Finding{p.name, state, says})
	}
	if t.cfg.Network != nil {
		t.network(ctx)
	}
	t.survive(ctx)
	t.count()
	return nil
}

// program is something hostile. It returns what it got, "" for nothing, and how well that was kept.
type program struct {
	name string
	held string // what is said when it was contained
	weak string // and when that was weak; "" = limits are kept by weaker means
	// kernel: what it wants is of the kernel that runs it.
	kernel bool
	run    func(ctx context.Context, t *trial) (got string, state State, err error)
}

// try runs one program and judges it. Without a prize it also asks both guests for a sign of life, since hurting a
// neighbour is an escape too. It returns the state and the sentence for Finding.Says.
func (t *trial) try(ctx context.Context, p program) (State, string) {
	ctx, cancel := t.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	got, state, err := p.run(ctx, t)
	switch {
	case err != nil:
		if says, held := t.ended(ctx); held {
			return Contained, says
		}
		return t.fallen(ctx, "the sandbox did not hold out: "+err.Error())
	// What was taken is of the guest's own kernel: gVisor's or a virtual machine's. It does no harm to the machine.
	case got != "" && p.kernel && t.ownKernel:
		return Contained, got + ", of a kernel of its own, which is not the machine's"
	// Such guests get this by design.
	case got != "" && t.cfg.Loose[p.name] != "":
		return Weak, t.cfg.Loose[p.name]
	case got != "":
		return Escaped, got
	}
	for who, g := range map[string]*guest{"its neighbour": t.neighbour, "its own sandbox": t.evil} {
		if r, err := g.run(ctx, false, "echo alive", drover.Limits{}); err != nil || r.stdout != "alive\n" {
			return t.fallen(ctx, fmt.Sprintf("%s no longer works: %v %s", who, err, r.stderr))
		}
	}
	if state == Weak && p.weak != "" {
		return state, p.held + "; " + p.weak
	}
	if state == Weak {
		return state, p.held + "; without control groups: by resource limits, and by looking every few hundredths of a second"
	}
	if state == NotTried {
		return state, "there is nothing to try it on here"
	}
	return state, p.held
}

// limited is how well limits are kept here.
func (t *trial) limited() State {
	if t.cfg.Groups == nil {
		return Weak
	}
	return Contained
}
