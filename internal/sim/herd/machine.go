package herd

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// Machine is a machine with what runs on it and what its agent stored.
type Machine struct {
	Around

	w      *virtual.World
	Spec   *drover.Node
	Agent  *virtual.Scope // nil while there is none
	Slow   bool           // starts take long
	Full   bool           // its disk is
	Skew   time.Duration
	Stored map[string]*Allocation // what the agent knows of allocations, in its local state
	Runs   map[string]*Process    // by allocation and task
	ran    map[string]bool        // allocations of pools that ever ran here: none may start twice
}

// Around is what is around a machine.
type Around struct {
	Quiet  func() bool                // the faults are over
	Mended func() bool                // so long that even what always fails does so no more
	Report func(exchange.AllocUpdate) // has the agent tell control
	Begins func(task string)          // a task begins to run, named by its allocation and its name
}

// New returns a machine on which nothing runs, without an agent.
func New(w *virtual.World, spec *drover.Node, around Around) *Machine {
	return &Machine{
		Around: around, w: w, Spec: spec, Stored: map[string]*Allocation{}, Runs: map[string]*Process{}, ran: map[string]bool{},
	}
}

// Clock is the time as the machine has it: wrong by its skew.
func (m *Machine) Clock() time.Time { return m.w.Now.Add(m.Skew) }

// Up reports whether there is an agent.
func (m *Machine) Up() bool { return m.Agent != nil }

// Reboot ends everything that runs, and with wipe what the agent stored too.
func (m *Machine) Reboot(wipe bool) {
	for _, x := range m.Runs {
		x.Dead = true
	}
	m.Runs = map[string]*Process{}
	if wipe {
		m.w.Say("%s: wiped", m.Spec.Name)
		m.ran, m.Stored = map[string]bool{}, map[string]*Allocation{}
	}
}

// OOM kills something that runs.
func (m *Machine) OOM() {
	keys := slices.Sorted(maps.Keys(m.Runs))
	if len(keys) > 0 {
		m.Runs[keys[m.w.Rng.IntN(len(keys))]].end(oomExit)
	}
}

var oomExit = taskmachine.Exited{Code: 137, Signal: 9, OOMKilled: true}
