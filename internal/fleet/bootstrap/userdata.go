package bootstrap

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Shareable reports that the pool's machines can share their user data: what a person wrote with a machine's own token
// or name in it is of one machine. One that is reached over ssh gets its own configuration there.
func Shareable(p *fleet.Policy) bool {
	for _, own := range []string{"${token}", "${intent}", "${secret}"} {
		if strings.Contains(p.UserData, own) {
			return false
		}
	}
	return true
}

// Home is what machines are told of where they belong.
type Home struct {
	Kind       string   // of the provider
	Server     string   // host:port that they dial
	Others     []string // and those of other servers
	Authority  string   // PEM, that the server's certificate is of; "" without TLS between agents
	Datacenter string   // that agents are in unless their configuration says otherwise
	Tokens     []string // of the machines of a batch, which share their user data, by launch index; nil = it is bought alone
}

// MachineData returns the user data of a machine: the policy's with the placeholders filled in. Without any, the machine gets
// its agent's configuration, a machine of a cloud a script with it, and a machine that is reached over ssh nothing.
func MachineData(p *fleet.Policy, h Home, token, intent string) string {
	switch {
	case p.UserData != "" || p.SSH != nil:
		return filled(p.UserData, p, h, token, intent)
	case h.Kind == provider.KindEC2:
		return CloudInit(agentConfig(p, h, token))
	}
	return agentConfig(p, h, token)
}

// SSHData is the configuration of an agent that is started over ssh.
func SSHData(p *fleet.Policy, h Home, token, intent string) string {
	return filled(cmp.Or(p.SSH.Config, "${config}"), p, h, token, intent)
}

// filled fills the placeholders in.
func filled(text string, p *fleet.Policy, h Home, token, intent string) string {
	return strings.NewReplacer(
		"${config}", agentConfig(p, h, token), "${server}", h.Server, "${token}", token, "${intent}", intent, "${pool}", p.Name,
		"${node_pool}", p.NodePool, "${secret}", hostSecret(token),
	).Replace(text)
}

// MetadataService tells an EC2 machine about itself.
const MetadataService = "http://169.254.169.254"

// agentConfig is the configuration of a machine's agent, in HCL.
func agentConfig(p *fleet.Policy, h Home, token string) string {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "    %s = %s\n", key, quoted(value))
		}
	}
	if p.Datacenter != "" && p.Datacenter != h.Datacenter { // the user data may name one instead
		fmt.Fprintf(&b, "datacenter = %s\n", quoted(p.Datacenter))
	}
	servers := []string{quoted(h.Server)}
	for _, s := range h.Others {
		servers = append(servers, quoted(s))
	}
	fmt.Fprintf(&b, "client {\n  enabled = true\n  servers = [%s]\n", strings.Join(servers, ", "))
	if len(h.Tokens) == 0 {
		fmt.Fprintf(&b, "  join_token = %s\n", quoted(token))
	}
	fmt.Fprintf(&b, "  node_pool = %s\n  machine {\n", quoted(p.NodePool))
	if len(h.Tokens) > 0 { // the machine knows which of them it is
		list := make([]string, len(h.Tokens))
		for k := range list {
			list[k] = quoted(h.Tokens[k])
		}
		fmt.Fprintf(&b, "    join_tokens = [%s]\n", strings.Join(list, ", "))
		line("metadata", MetadataService)
	}
	line("boot_probe", p.BootProbe)
	line("run_probe", p.RunProbe)
	line("authority", h.Authority)
	line("dead_after", p.TerminateAtDead.String())
	if h.Kind == provider.KindEC2 && p.Spot != fleet.SpotNever {
		line("notices", MetadataService)
	}
	if h.Kind == provider.KindEC2 || p.SSH != nil { // a machine of its own, not a guest of this one
		b.WriteString("    power_off = [\"poweroff\"]\n")
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

// quoted writes a text in HCL, where ${ and %{ begin templates.
func quoted(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}

// SSHConfig is how a machine of the policy is made ours. agentText is its agent's configuration; console returns what the
// machine wrote, nil if the provider does not show that. Errors: Invalid for a key that can't be read.
func SSHConfig(p *fleet.Policy, token, agentText string, console func(context.Context) ([]byte, error)) (Config, error) {
	signer, err := ReadKey(p.SSH.Key)
	if err != nil {
		return Config{}, err
	}
	cfg := Config{User: p.SSH.User, Port: p.SSH.Port, Signer: signer, Agent: agentText, Probe: p.BootProbe}
	switch {
	case len(p.SSH.HostKeys) > 0:
		cfg.Host.Pinned = p.SSH.HostKeys
	case p.SSH.SecretFile != "":
		cfg.Host.Secret, cfg.Host.SecretFile = hostSecret(token), p.SSH.SecretFile
	case console != nil:
		cfg.Host.Console = console
	}
	return cfg, nil
}

// hostSecret is what only the machine with the token can know, and does not tell the token.
func hostSecret(token string) string {
	sum := sha256.Sum256([]byte("drover-host\x00" + token))
	return hex.EncodeToString(sum[:])
}
