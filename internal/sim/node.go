package sim

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/agent"
)

// node is a machine with an agent on it. What the agent stores survives the agent; what runs survives it too, unless
// the machine restarts.
type node struct {
	w     *World
	spec  *drover.Node
	agent *scope // nil while there is none

	at     int // the server that it speaks with
	host   *host
	wiped  bool // it lost its local state once
	cut    bool // the network is
	slow   bool // starts take long
	full   bool // its disk is
	skew   time.Duration
	stored map[string]*local   // what the agent knows of allocations, in its local state
	runs   map[string]*process // by allocation and task
	ran    map[string]bool     // allocations of pools that ever ran here: none may start twice
	starts uint64              // of agents, as the local state counts them

	// Of the agent's life.
	contacted bool
	pending   map[string]exchange.AllocUpdate
	order     []string // of pending
	urgent    signal
	again     signal
	refused   map[string]bool
	heard     bool // registered
	sight     *agent.Sight
	obeyed    uint64 // the newest state
	said      uint64 // Order of the newest update
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
	if w.quorum != nil {
		n.host, n.at = &host{w: w}, i%len(w.servers)
	}
	w.nodes = append(w.nodes, n)
	return n
}

// clock is the time as the machine has it: wrong by its skew.
func (n *node) clock() time.Time { return n.w.now.Add(n.skew) }

func (n *node) up() bool { return n.agent != nil }

// start starts the agent: what was stored is looked for, and decided on once control was heard.
func (n *node) start() {
	n.w.say("%s: agent up", n.spec.Name)
	n.agent, n.sight, n.obeyed = &scope{w: n.w, host: n.host}, &agent.Sight{}, 0
	n.contacted, n.heard, n.refused = false, false, map[string]bool{}
	n.pending, n.order = map[string]exchange.AllocUpdate{}, nil
	n.starts++
	n.said = n.starts << 40
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
		n.host.end()
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
		n.starts = 0
	}
}

// travel is the way to the server or back; it reports whether the message arrives.
func (n *node) travel(p *proc) bool {
	p.sleep(n.w.between(100*time.Microsecond, 20*time.Millisecond))
	if n.cut || n.w.servers[0].process.over {
		p.sleep(n.w.between(100*time.Millisecond, 2*time.Second)) // until it is given up
		return false
	}
	return true
}

// stayRegistered is the agent's.
func (n *node) stayRegistered(p *proc) {
	retry := 100 * time.Millisecond
	for {
		heard := n.heard
		answer, err := ask(n, p, func(p *proc, s *server) (exchange.Registration, error) {
			if heard {
				return s.heartbeat(p, n.spec.ID)
			}
			return s.register(p, n.spec)
		})
		if err == nil && !n.heard {
			n.sight.Registered(answer)
		}
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
