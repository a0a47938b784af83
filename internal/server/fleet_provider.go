package server

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/docker"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/loopback"
)

func (f *fleetPlane) newProvider(cfg *config.FleetProvider, owner string) (provider.Provider, error) {
	return openProvider(cfg, owner, f.dataDir, f.deps.Clock)
}

// openProvider makes the provider that the block describes. Errors: Invalid.
func openProvider(cfg *config.FleetProvider, owner, dataDir string, c clock.Clock) (provider.Provider, error) {
	bounds := provider.Bounds{Max: cfg.Max, Room: cfg.Room.Capacity()}
	switch cfg.Kind() {
	case "loopback":
		dir := cfg.Dir
		if dir == "" {
			dir = filepath.Join(dataDir, "fleet", cfg.Name)
		}
		var env []string
		for k, v := range cfg.Env {
			env = append(env, k+"="+v)
		}
		return loopback.New(loopback.Config{
			Dir: dir, Owner: owner, Env: env, Bounds: bounds, StopTimeout: config.Duration(cfg.StopTimeout, 0),
		}, c)
	case "docker":
		return docker.New(docker.Config{
			Endpoint: cfg.Host, Owner: owner, Network: cfg.Network, Privileged: config.True(cfg.Privileged), Image: cfg.AgentImage,
			Bounds: bounds,
		}, c)
	}
	return ec2.New(ec2.Config{
		Region: cfg.Region, Endpoint: cfg.Host, Owner: owner, Subnets: cfg.Subnets, SecurityGroups: cfg.SecurityGroups,
		InstanceProfile: cfg.Profile, KeyName: cfg.KeyName, PerSecond: cfg.PerSecond,
		RootDevice: cfg.RootDevice, PublicAddress: config.True(cfg.PublicAddress), Credentials: credentials(cfg),
	}, c)
}

// credentials are those of the block, else what Amazon's own tools would find.
func credentials(cfg *config.FleetProvider) ec2.Credentials {
	if cfg.AccessKey != "" {
		return ec2.Static(cfg.AccessKey, cfg.SecretKey)
	}
	return ec2.NewChain(ec2.ChainConfig{File: cfg.CredentialFile, Region: cfg.Region})
}

// localAttributes are what nodes of the provider's machines will have whatever their type.
func localAttributes(cfg *config.FleetProvider) map[string]string {
	if cfg.Kind() == kindEC2 {
		return map[string]string{"kernel.name": "linux"}
	}
	return map[string]string{"kernel.name": "linux", "cpu.arch": runtime.GOARCH, "arch": runtime.GOARCH}
}

// userData fills the placeholders of the policy's user data in; without user data the machine gets its agent's
// configuration, a machine of a cloud a script with it, and a machine that is reached over ssh nothing.
func (f *fleetPlane) userData(key []byte, kind string) func(*fleet.Policy, string) string {
	return func(p *fleet.Policy, intent string) string {
		at := f.home(kind)
		if b, _, ok := provider.BatchOf(intent); ok {
			for _, id := range b.Intents() {
				at.tokens = append(at.tokens, pool.Token(key, id))
			}
		}
		return machineData(p, at, pool.Token(key, intent), intent)
	}
}

// shareable reports that the pool's machines can share their user data: what a person wrote with a machine's own token
// or name in it is of one machine. One that is reached over ssh gets its own configuration there.
func shareable(p *fleet.Policy) bool {
	for _, own := range []string{"${token}", "${intent}", "${secret}"} {
		if strings.Contains(p.UserData, own) {
			return false
		}
	}
	return true
}

// home is what machines of a kind of provider are told of where they belong.
type home struct {
	kind      string
	server    string   // host:port that they dial
	authority string   // PEM, that the server's certificate is of; "" without TLS between agents
	tokens    []string // of the machines of a batch, which share their user data, by launch index; nil = it is bought alone
}

func (f *fleetPlane) home(kind string) home {
	return home{kind: kind, server: f.server, authority: f.authority}
}

func machineData(p *fleet.Policy, h home, token, intent string) string {
	switch {
	case p.UserData != "" || p.SSH != nil:
		return filled(p.UserData, p, h, token, intent)
	case h.kind == kindEC2:
		return bootstrap.CloudInit(agentConfig(p, h, token))
	}
	return agentConfig(p, h, token)
}

// sshData is the configuration of an agent that is started over ssh.
func sshData(p *fleet.Policy, h home, token, intent string) string {
	return filled(cmp.Or(p.SSH.Config, "${config}"), p, h, token, intent)
}

// filled fills the placeholders in.
func filled(text string, p *fleet.Policy, h home, token, intent string) string {
	return strings.NewReplacer(
		"${config}", agentConfig(p, h, token), "${server}", h.server, "${token}", token, "${intent}", intent, "${pool}", p.Name,
		"${node_pool}", p.NodePool, "${secret}", hostSecret(token),
	).Replace(text)
}

const (
	kindEC2 = "ec2"
	// metadataService tells an EC2 machine about itself.
	metadataService = "http://169.254.169.254"
)

// agentConfig is the configuration of a machine's agent, in HCL.
func agentConfig(p *fleet.Policy, h home, token string) string {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "    %s = %s\n", key, quoted(value))
		}
	}
	if p.Datacenter != "" && p.Datacenter != config.Default().Datacenter { // the user data may name one instead
		fmt.Fprintf(&b, "datacenter = %s\n", quoted(p.Datacenter))
	}
	fmt.Fprintf(&b, "client {\n  enabled = true\n  servers = [%s]\n", quoted(h.server))
	if len(h.tokens) == 0 {
		fmt.Fprintf(&b, "  join_token = %s\n", quoted(token))
	}
	fmt.Fprintf(&b, "  node_pool = %s\n  machine {\n", quoted(p.NodePool))
	if len(h.tokens) > 0 { // the machine knows which of them it is
		list := make([]string, len(h.tokens))
		for k := range list {
			list[k] = quoted(h.tokens[k])
		}
		fmt.Fprintf(&b, "    join_tokens = [%s]\n", strings.Join(list, ", "))
		line("metadata", metadataService)
	}
	line("boot_probe", p.BootProbe)
	line("run_probe", p.RunProbe)
	line("authority", h.authority)
	line("dead_after", p.TerminateAtDead.String())
	if h.kind == kindEC2 && p.Spot != fleet.SpotNever {
		line("notices", metadataService)
	}
	if h.kind == kindEC2 || p.SSH != nil { // a machine of its own, not a guest of this one
		b.WriteString("    power_off = [\"poweroff\"]\n")
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

// quoted writes a text in HCL, where ${ and %{ begin templates.
func quoted(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}

// withPort completes an advertised address with the port on which the listener is.
func withPort(address string, l net.Listener) string {
	if _, _, err := net.SplitHostPort(address); err == nil || l == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(int(port(l.Addr()))))
}
