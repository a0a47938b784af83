package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/clock"
)

// Config says what is started.
type Config struct {
	Binary  string // this program
	Dir     string // of all that is kept
	Servers int    // 1, 3 or 5
	Node    string // configuration of a node that is started too; "" is none
	Debug   bool   // servers answer for profiles
	Clock   clock.Clock
}

// Plane is the servers of a cluster, and its node if there is one.
type Plane struct {
	cfg     Config
	Servers []*Agent
	Node    *Agent // nil without one
	joined  []*Agent
}

// Agent is a process of the plane.
type Agent struct {
	URL     string // of its faces; "" while it does not run
	RPC     string // host:port for nodes
	Process *exec.Cmd

	args []string
	log  string // path of what it said
	api  *api.Client
	done chan struct{} // closed when it has ended
}

// secret is what nodes join with, and key what servers prove to each other: all are on loopback.
const (
	secret = "bench"
	key    = "MDEyMzQ1Njc4OWFiY2RlZg=="
)

// Start starts the servers and the node, and waits until a leader is known to all and the node is ready. Close it.
func Start(ctx context.Context, cfg Config) (*Plane, error) {
	p := &Plane{cfg: cfg}
	if err := p.start(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Plane) start(ctx context.Context) error {
	cfg := p.cfg
	var gossip, rpc []string
	for range cfg.Servers {
		for _, list := range []*[]string{&gossip, &rpc} {
			address, err := freeAddress(ctx)
			if err != nil {
				return err
			}
			*list = append(*list, address)
		}
	}
	for i := range cfg.Servers {
		a, err := p.agent(fmt.Sprint("s", i), fmt.Sprintf("enable_debug = %t\n", cfg.Debug)+serverText(i, gossip, rpc[i]))
		if err != nil {
			return err
		}
		a.RPC = rpc[i]
		p.Servers = append(p.Servers, a)
		if err := a.start(ctx); err != nil {
			return err
		}
	}
	if err := p.AwaitWhole(ctx); err != nil || cfg.Node == "" {
		return err
	}
	var err error
	p.Node, err = p.Join(ctx, "node", cfg.Node, fmt.Sprintf("enable_debug = %t\n", cfg.Debug))
	return err
}

// freeAddress is one on loopback that nobody listens at now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func serverText(i int, gossip []string, rpc string) string {
	_, port, _ := net.SplitHostPort(rpc) // of a listener
	text := fmt.Sprintf("name = \"s%d\"\nports {\n  rpc = %s\n%s}\nclient {\n  enabled = false\n}\nautopilot {\n"+
		"  server_stabilization_time = \"1s\"\n}\n", i, port, "%s")
	server := "  enabled = true\n  job_max_count = 0\n  join_token = \"" + secret + "\"\n"
	serf := ""
	if len(gossip) > 1 {
		var join []string
		for k, address := range gossip {
			if k != i {
				join = append(join, fmt.Sprintf("%q", address))
			}
		}
		_, own, _ := net.SplitHostPort(gossip[i]) // of a listener
		serf = "  serf = " + own + "\n"
		server += fmt.Sprintf("  bootstrap_expect = %d\n  encrypt = %q\n  retry_join = [%s]\n  retry_interval = \"1s\"\n", len(gossip), key,
			strings.Join(join, ", "))
	}
	return fmt.Sprintf(text, serf) + "server {\n" + server + "}\n"
}

// Join starts a node, and waits until it is ready. client is more of its client block, and top what stands beside that.
func (p *Plane) Join(ctx context.Context, name, client, top string) (*Agent, error) {
	var list []string
	for _, s := range p.Servers {
		list = append(list, fmt.Sprintf("%q", s.RPC))
	}
	block := fmt.Sprintf("name = %q\nserver {\n  enabled = false\n}\n%sclient {\n  enabled = true\n  servers = [%s]\n  join_token = %q\n%s}\n",
		name, top, strings.Join(list, ", "), secret, client)
	a, err := p.agent(name, block)
	if err != nil {
		return nil, err
	}
	p.joined = append(p.joined, a)
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	return a, p.await(ctx, "a ready node", func() bool {
		var nodes []drover.NodeListStub
		_, err := p.Servers[0].api.Call(ctx, http.MethodGet, "/v1/nodes", nil, nil, &nodes)
		ready := func(n drover.NodeListStub) bool { return n.Name == name && n.Status == drover.NodeStatusReady }
		return err == nil && slices.ContainsFunc(nodes, ready)
	})
}

// Data is the folder of what the agent keeps.
func (a *Agent) Data() string { return filepath.Join(filepath.Dir(a.log), "data") }

// agent writes the configuration of one that is not started yet.
func (p *Plane) agent(name, text string) (*Agent, error) {
	dir := filepath.Join(p.cfg.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "agent.hcl")
	text += fmt.Sprintf("data_dir = %q\n", filepath.Join(dir, "data"))
	return &Agent{
		args: []string{p.cfg.Binary, "agent", "-config", path, "-http-port", "0", "-log-level", "warn"}, log: filepath.Join(dir, "log"),
	}, os.WriteFile(path, []byte(text), 0o600)
}

// start starts the process, and waits until it serves.
func (a *Agent) start(ctx context.Context) error {
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has it
	a.Process = exec.CommandContext(context.WithoutCancel(ctx), a.args[0], a.args[1:]...)
	a.Process.Stderr = log
	out, err := a.Process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := a.Process.Start(); err != nil {
		return err
	}
	a.done = make(chan struct{})
	serving := make(chan string, 1)
	go func(process *exec.Cmd, done chan struct{}) { // ends with the process
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, address, ok := strings.Cut(lines.Text(), "is serving on "); ok {
				serving <- strings.TrimSpace(address)
			}
		}
		_ = process.Wait() // how it ended is in its log
	}(a.Process, a.done)
	select {
	case a.URL = <-serving:
		a.api = &api.Client{HTTP: &http.Client{}, Address: a.URL}
		return nil
	case <-a.done:
		text, _ := os.ReadFile(a.log)
		return drover.Errorf(drover.Unavailable, "an agent ended before it served: %s", text)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Kill ends the process with SIGKILL.
func (a *Agent) Kill() error {
	err := a.Process.Process.Kill()
	<-a.done
	return err
}

// Restart starts a process that was killed, with what it has on its disk.
func (a *Agent) Restart(ctx context.Context) error { return a.start(ctx) }

// Close ends all processes, the node first.
func (p *Plane) Close() {
	for _, a := range slices.Concat(p.joined, p.Servers) {
		if a.Process == nil || a.Process.Process == nil {
			continue
		}
		_ = a.Process.Process.Signal(syscall.SIGTERM) // it may have ended
		patience := p.cfg.Clock.NewTimer(30 * time.Second)
		select {
		case <-a.done:
		case <-patience.C():
			_ = a.Kill()
		}
		patience.Stop()
	}
}

// AwaitWhole waits until all servers vote and know a leader.
func (p *Plane) AwaitWhole(ctx context.Context) error {
	return p.await(ctx, "servers that all vote", func() bool {
		for _, a := range p.Servers {
			var c struct {
				Servers []struct{ Voter, Leader bool }
			}
			if _, err := a.api.Call(ctx, http.MethodGet, "/v1/operator/raft/configuration", nil, nil, &c); err != nil {
				return false
			}
			voters, leaders := 0, 0
			for _, s := range c.Servers {
				if s.Voter {
					voters++
				}
				if s.Leader {
					leaders++
				}
			}
			if voters != len(p.Servers) || leaders != 1 {
				return false
			}
		}
		return true
	})
}

// Leader is the number of the server that leads. Errors: Unavailable.
func (p *Plane) Leader(ctx context.Context) (leads int, err error) {
	err = p.await(ctx, "a leader", func() bool {
		for i, a := range p.Servers {
			var self struct {
				Stats map[string]map[string]string `json:"stats"`
			}
			_, err := a.api.Call(ctx, http.MethodGet, "/v1/agent/self", nil, nil, &self)
			if err == nil && self.Stats["raft"]["state"] == "Leader" {
				leads = i
				return true
			}
		}
		return false
	})
	return leads, err
}

// Entries is the number of the last entry in a server's log.
func (p *Plane) Entries(ctx context.Context, server int) (last uint64, err error) {
	var self struct {
		Stats map[string]map[string]string `json:"stats"`
	}
	if _, err := p.Servers[server].api.Call(ctx, http.MethodGet, "/v1/agent/self", nil, nil, &self); err != nil {
		return 0, err
	}
	return strconv.ParseUint(self.Stats["raft"]["last_log_index"], 10, 64)
}

// await asks until it is so, for two minutes at most.
func (p *Plane) await(ctx context.Context, what string, f func() bool) error {
	ctx, cancel := p.cfg.Clock.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for !f() {
		if !clock.Sleep(ctx, p.cfg.Clock, 20*time.Millisecond) {
			return drover.Errorf(drover.Unavailable, "waiting for %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}
