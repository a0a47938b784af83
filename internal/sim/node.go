package sim

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/sim/herd"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// node is a machine with an agent on it. What the agent stores survives the agent; what runs survives it too, unless
// the machine restarts.
type node struct {
	*herd.Machine
	w *World

	at     int // the server that it speaks with
	host   *virtual.Host
	wiped  bool   // it lost its local state once
	cut    bool   // the network is
	starts uint64 // of agents, as the local state counts them

	// Of the agent's life.
	contacted bool
	pending   map[string]exchange.AllocUpdate
	order     []string // of pending
	urgent    virtual.Signal
	again     virtual.Signal
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
	n := &node{w: w}
	n.Machine = herd.New(w.World, spec, herd.Around{
		Quiet: func() bool { return w.quiet }, Mended: func() bool { return w.quiet && w.Now.Sub(w.healed) > mendAfter },
		Report: func(u exchange.AllocUpdate) { n.add(u) }, Begins: n.checkAlone,
	})
	if w.quorum != nil {
		n.host, n.at = &virtual.Host{W: w.World}, i%len(w.servers)
	}
	w.nodes = append(w.nodes, n)
	return n
}

// start starts the agent: what was stored is looked for, and decided on once control was heard.
func (n *node) start() {
	n.w.Say("%s: agent up", n.Spec.Name)
	n.Agent, n.sight, n.obeyed = &virtual.Scope{W: n.w.World, Host: n.host}, &agent.Sight{}, 0
	n.contacted, n.heard, n.refused = false, false, map[string]bool{}
	n.pending, n.order = map[string]exchange.AllocUpdate{}, nil
	n.starts++
	n.said = n.starts << 40
	n.urgent, n.again = virtual.Signal{}, virtual.Signal{}
	for _, l := range n.Locals() {
		l.Restore()
	}
	n.Agent.Spawn(n.Spec.Name+" beat", n.stayRegistered)
	n.Agent.Spawn(n.Spec.Name+" pull", n.pull)
	n.Agent.Spawn(n.Spec.Name+" push", n.push)
}

// kill ends the agent; tasks run on.
func (n *node) kill() {
	if n.Agent != nil {
		n.host.End()
		n.w.Say("%s: agent killed", n.Spec.Name)
		n.Agent.End()
		n.Agent = nil
	}
}

// reboot ends everything that runs, and with wipe what the agent stored too.
func (n *node) reboot(wipe bool) {
	n.kill()
	n.Machine.Reboot(wipe)
	if wipe {
		n.wiped, n.starts = true, 0
	}
}

// travel is the way to the server or back; it reports whether the message arrives.
func (n *node) travel(p *virtual.Proc) bool {
	p.Sleep(n.w.Between(100*time.Microsecond, 20*time.Millisecond))
	if n.cut || n.w.servers[0].process.Over {
		p.Sleep(n.w.Between(100*time.Millisecond, 2*time.Second)) // until it is given up
		return false
	}
	return true
}

// stayRegistered is the agent's.
func (n *node) stayRegistered(p *virtual.Proc) {
	retry := 100 * time.Millisecond
	for {
		heard := n.heard
		answer, err := ask(n, p, func(p *virtual.Proc, s *server) (exchange.Registration, error) {
			if heard {
				return s.heartbeat(p, n.Spec.ID)
			}
			return s.register(p, n.Spec)
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
		if n.again.Wait(p, wait) {
			n.heard = false
		}
	}
}
