package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/network"
)

// nodes are simulated. Each speaks the protocol of nodes over connections of its own. It says of an allocation that it runs as
// soon as it is told to run it, as the fake driver would.
type nodes struct {
	clock      clock.Clock
	log        *slog.Logger
	left       atomic.Int64 // nodes that were not answered yet
	registered func()       // called when none is left
}

// look is how often it is looked whether all nodes have all their tunnels.
const look = 100 * time.Millisecond

// RunNodes runs count simulated nodes, the first with this number, until ctx ends. It calls registered once all were
// answered, and connected once each is connected with all servers. Their ids are made of their numbers.
func RunNodes(ctx context.Context, c clock.Clock, servers []string, first, count int, registered, connected func()) {
	all := &nodes{clock: c, log: slog.New(slog.DiscardHandler), registered: registered}
	all.left.Store(int64(count))
	ids := id.NewSeeded(uint64(first) + 1) // a small number
	var running sync.WaitGroup
	links := make([]*link.Dialed, count)
	for i := range count {
		spec := simulated(first+i, ids.New(), ids.New())
		d := all.dial(spec, servers)
		links[i] = d
		running.Go(func() { all.run(ctx, spec, d) }) // ends with ctx
	}
	for len(links) > 0 && clock.Sleep(ctx, c, look) {
		links = slices.DeleteFunc(links, (*link.Dialed).Whole)
	}
	if len(links) == 0 {
		connected()
	}
	running.Wait()
}

// perProcess is how many nodes one process simulates: each has a connection to each server and one more, and processes may
// have some thousand files open.
const perProcess = 2500

// Nodes are processes that simulate nodes.
type Nodes struct {
	Processes []*exec.Cmd
	inputs    []io.WriteCloser // each ends when its input does
	told      []*bufio.Reader  // what each says
}

// NodesCommand is the hidden command that RunNodes is for: it gets the first number, the count and the servers.
const NodesCommand = "bench-nodes"

// StartNodes starts n simulated nodes. Close them.
func (p *Plane) StartNodes(ctx context.Context, n int) (*Nodes, error) {
	out := &Nodes{}
	if err := out.start(ctx, p, n); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func (n *Nodes) start(ctx context.Context, p *Plane, count int) error {
	for first := 0; first < count; first += perProcess {
		args := []string{NodesCommand, strconv.Itoa(first), strconv.Itoa(min(perProcess, count-first))}
		for _, s := range p.Servers {
			args = append(args, s.RPC)
		}
		c := exec.CommandContext(context.WithoutCancel(ctx), p.cfg.Binary, args...)
		in, err := c.StdinPipe()
		if err != nil {
			return err
		}
		told, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		c.Env = append(os.Environ(), "GOGC=200") // what all of them keep is not collected as often as for one of them
		inGroup(c)
		if err := c.Start(); err != nil {
			return err
		}
		giveWay(c)
		n.Processes, n.inputs, n.told = append(n.Processes, c), append(n.inputs, in), append(n.told, bufio.NewReader(told))
	}
	return nil
}

// Await waits until all are registered, and when it is called again until each is connected with all servers, or ctx ends.
func (n *Nodes) Await(ctx context.Context) error {
	done := make(chan error, len(n.told))
	for _, l := range n.told {
		go func() { // ends when the nodes are there, or with their process
			_, err := l.ReadString('\n')
			done <- err
		}()
	}
	for range n.told {
		select {
		case err := <-done:
			if err != nil {
				return drover.Errorf(drover.Unavailable, "simulated nodes ended: %w", err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close ends the nodes as a power cut would.
func (n *Nodes) Close() {
	for i, c := range n.Processes {
		_ = c.Process.Kill() // it may have ended
		_ = n.inputs[i].Close()
		_ = c.Wait() // it was killed
	}
}

// simulated is as long as what a small machine reports of itself.
func simulated(i int, nodeID, secret string) *drover.Node {
	n := &drover.Node{
		ID: nodeID, SecretID: secret, Name: fmt.Sprintf("node-%05d", i), Datacenter: "dc1", NodePool: drover.DefaultNodePool,
		Attributes: map[string]string{"kernel.name": "linux", "driver.mock_driver": "1", "unique.hostname": fmt.Sprintf("node-%05d", i)},
		Drivers:    map[string]*drover.DriverInfo{"mock_driver": {Detected: true, Healthy: true, HealthDescription: "Healthy"}},
		Meta:       map[string]string{"rack": fmt.Sprintf("r%d", i%50)},
		NodeResources: &drover.NodeResources{
			Cpu: drover.NodeCpuResources{CpuShares: 32_000, TotalCpuCores: 16}, Memory: drover.NodeMemoryResources{MemoryMB: 128_000},
			Disk: drover.NodeDiskResources{DiskMB: 1_000_000}, MinDynamicPort: network.MinDynamicPort, MaxDynamicPort: network.MaxDynamicPort,
		},
	}
	for k := range 20 {
		n.Attributes[fmt.Sprintf("platform.attribute.%02d", k)] = fmt.Sprintf("some value %02d", k)
	}
	return n
}

// simulation is one node.
type simulation struct {
	*nodes
	spec    *drover.Node
	control *link.Dialed
	again   chan struct{} // to register
	once    sync.Once     // the first registration
	known   chan struct{} // closed after it
}

// dial makes a node's side of the link.
func (n *nodes) dial(spec *drover.Node, servers []string) *link.Dialed {
	return link.Dial(link.DialConfig{
		Servers: servers, Identity: link.Identity{NodeID: spec.ID, Secret: spec.SecretID, JoinToken: secret},
		Tokens: func(context.Context, string) (exchange.Tokens, error) { return exchange.Tokens{Join: secret}, nil },
		Clock:  n.clock, Log: n.log,
	})
}

func (n *nodes) run(ctx context.Context, spec *drover.Node, control *link.Dialed) {
	s := &simulation{nodes: n, spec: spec, control: control, again: make(chan struct{}, 1), known: make(chan struct{})}
	var loops sync.WaitGroup
	loops.Go(func() { _ = s.control.Run(ctx, nothing{}) }) // ends with ctx
	loops.Go(func() { s.beat(ctx) })                       // ends with ctx
	s.pull(ctx)
	loops.Wait()
}

// beat registers the node and says that it is alive, as the agent does.
func (s *simulation) beat(ctx context.Context) {
	registered := false
	for ctx.Err() == nil {
		var answer exchange.Registration
		var err error
		if registered {
			answer, err = s.control.Heartbeat(ctx, s.spec.ID)
		} else {
			answer, err = s.control.Register(ctx, s.spec)
		}
		wait := time.Second
		switch {
		case err == nil:
			s.once.Do(func() {
				if close(s.known); s.left.Add(-1) == 0 {
					s.registered()
				}
			})
			registered, wait = true, answer.TTL/2
		case drover.CodeOf(err) == drover.NotFound:
			registered = false
		}
		clock.Await(ctx, s.clock, wait, s.again)
	}
}

// pull does what control wants, and says so.
func (s *simulation) pull(ctx context.Context) {
	select {
	case <-s.known:
	case <-ctx.Done():
		return
	}
	told := map[string]bool{}
	for seen := (exchange.Seen{}); ctx.Err() == nil; {
		a, err := s.control.Pull(ctx, s.spec.ID, seen, 5*time.Minute)
		if err != nil {
			if drover.CodeOf(err) == drover.NotFound {
				seen.Index, seen.Answer = 0, ""
				select {
				case s.again <- struct{}{}:
				default: // it is asked already
				}
			}
			clock.Sleep(ctx, s.clock, time.Second)
			continue
		}
		var updates []exchange.AllocUpdate
		for _, x := range a.Allocs {
			status := drover.AllocClientRunning
			if x.DesiredStatus != drover.AllocDesiredRun {
				status = drover.AllocClientComplete
			}
			if told[x.ID+status] {
				continue
			}
			updates = append(updates, s.update(x, status))
		}
		if len(updates) > 0 && s.control.Push(ctx, s.spec.ID, updates) != nil {
			clock.Sleep(ctx, s.clock, 100*time.Millisecond)
			seen.Index, seen.Answer = 0, ""
			continue
		}
		for _, u := range updates {
			told[u.ID+u.ClientStatus] = true
		}
		seen = exchange.Seen{Index: max(a.Index, 1), State: max(a.State, seen.State), Age: a.Age, Answer: a.Answer}
	}
}

// update is what an agent says of an allocation whose tasks it started or ended.
func (s *simulation) update(a *drover.Allocation, status string) exchange.AllocUpdate {
	now := s.clock.Now()
	u := exchange.AllocUpdate{ID: a.ID, ClientStatus: status, Time: now.UnixNano(), TaskStates: map[string]*drover.TaskState{}}
	g := a.Job.Group(a.TaskGroup)
	for _, t := range g.Tasks {
		state := &drover.TaskState{State: drover.TaskStateRunning, StartedAt: now}
		if status == drover.AllocClientComplete {
			state.State, state.FinishedAt = drover.TaskStateDead, now
		}
		for k, e := range []string{drover.TaskReceived, drover.TaskSetup, drover.TaskStarted} {
			state.Events = append(state.Events, &drover.TaskEvent{Type: e, Time: now.UnixNano() + int64(k), Details: map[string]string{}})
		}
		u.TaskStates[t.Name] = state
	}
	return u
}

// nothing is the workloads of a simulated node: nobody asks about them.
type nothing struct{ exchange.Workloads }
