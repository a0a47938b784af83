package sim

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// node is a machine with an agent on it. What the agent stores survives the agent; what runs survives it too, unless
// the machine restarts.
type node struct {
	w     *World
	spec  *drover.Node
	agent *scope // nil while there is none

	wiped  bool // it lost its local state once
	cut    bool // the network is
	slow   bool // starts take long
	full   bool // its disk is
	skew   time.Duration
	stored map[string]*local   // what the agent knows of allocations, in its local state
	runs   map[string]*process // by allocation and task
	ran    map[string]bool     // allocations of pools that ever ran here: none may start twice

	// Of the agent's life.
	contacted bool
	pending   map[string]exchange.AllocUpdate
	order     []string // of pending
	urgent    signal
	again     signal
	refused   map[string]bool
	heard     bool // registered
}

// addNode adds the machine number i without an agent. Machines are of two classes and three racks. They are small, with
// eight dynamic ports each, so that room and ports run out often.
func (w *World) addNode(i int) *node {
	spec := &drover.Node{
		ID: w.ids.New(), SecretID: "secret", Name: fmt.Sprintf("n%d", i), Datacenter: "dc1", NodeClass: fmt.Sprintf("c%d", i%2),
		Attributes: map[string]string{"kernel.name": "linux", "driver.fake": "1", "driver.sandbox": "1", "rack": fmt.Sprintf("r%d", i%3)},
		Drivers: map[string]*drover.DriverInfo{
			"fake": {Detected: true, Healthy: true}, "sandbox": {Detected: true, Healthy: true},
		},
		NodeResources: &drover.NodeResources{
			Cpu: drover.NodeCpuResources{CpuShares: 2000, TotalCpuCores: 4}, Memory: drover.NodeMemoryResources{MemoryMB: 4096},
			Disk:           drover.NodeDiskResources{DiskMB: 20_000},
			MinDynamicPort: 20_000, MaxDynamicPort: 20_007,
		},
		Status: drover.NodeStatusInit,
	}
	n := &node{w: w, spec: spec, stored: map[string]*local{}, runs: map[string]*process{}, ran: map[string]bool{}}
	w.nodes = append(w.nodes, n)
	return n
}

// clock is the time as the machine has it: wrong by its skew.
func (n *node) clock() time.Time { return n.w.now.Add(n.skew) }

func (n *node) up() bool { return n.agent != nil }

// start starts the agent: what was stored is looked for, and decided on once control was heard.
func (n *node) start() {
	n.w.say("%s: agent up", n.spec.Name)
	n.agent = &scope{w: n.w}
	n.contacted, n.heard, n.refused = false, false, map[string]bool{}
	n.pending, n.order = map[string]exchange.AllocUpdate{}, nil
	n.urgent, n.again = signal{}, signal{}
	for _, l := range n.locals() {
		l.restore()
	}
	n.agent.spawn(n.spec.Name+" beat", n.stayRegistered)
	n.agent.spawn(n.spec.Name+" pull", n.pull)
	n.agent.spawn(n.spec.Name+" push", n.push)
}

// kill ends the agent; tasks run on.
func (n *node) kill() {
	if n.agent != nil {
		n.w.say("%s: agent killed", n.spec.Name)
		n.agent.end()
		n.agent = nil
	}
}

// reboot ends everything that runs, and with wipe what the agent stored too.
func (n *node) reboot(wipe bool) {
	n.kill()
	for _, x := range n.runs {
		x.dead = true
	}
	n.runs = map[string]*process{}
	if wipe {
		n.w.say("%s: wiped", n.spec.Name)
		n.wiped, n.ran = true, map[string]bool{}
		n.stored = map[string]*local{}
	}
}

// travel is the way to the server or back; it reports whether the message arrives.
func (n *node) travel(p *proc) bool {
	p.sleep(n.w.between(100*time.Microsecond, 20*time.Millisecond))
	if n.cut || n.w.server.process.over {
		p.sleep(n.w.between(100*time.Millisecond, 2*time.Second)) // until it is given up
		return false
	}
	return true
}

// call asks the server; a lost answer is an error like a lost question.
func (n *node) call(p *proc, f func(s *server) error) error {
	if !n.travel(p) {
		return drover.Errorf(drover.Unavailable, "no way to the server")
	}
	err := f(n.w.server)
	if !n.travel(p) {
		return drover.Errorf(drover.Unavailable, "the answer was lost")
	}
	return err
}

// stayRegistered is the agent's.
func (n *node) stayRegistered(p *proc) {
	retry := 100 * time.Millisecond
	for {
		var answer exchange.Registration
		err := n.call(p, func(s *server) (err error) {
			if n.heard {
				answer, err = s.control.Heartbeat(n.w.ctx, n.spec.ID)
			} else {
				answer, err = s.control.Register(n.w.ctx, n.spec)
			}
			return err
		})
		wait := retry
		if err == nil {
			n.heard, retry = true, 100*time.Millisecond
			wait = answer.TTL / 2
		} else {
			n.heard = n.heard && drover.CodeOf(err) != drover.NotFound
			retry = min(2*retry, 15*time.Second)
		}
		if n.again.wait(p, wait) {
			n.heard = false
		}
	}
}
