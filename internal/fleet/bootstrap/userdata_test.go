package bootstrap

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// What a person wrote with a machine's own token or name in it can't be shared.
func TestUserDataThatIsOfOneMachine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "${config} of ${pool}": true, "#!/bin/sh\njoin ${token}": false, "${intent}": false, "${secret}": false,
	} {
		require.Equal(t, want, Shareable(&fleet.Policy{UserData: text}), text)
	}
}

func TestPlaceholdersAreFilledIn(t *testing.T) {
	t.Parallel()
	p := &fleet.Policy{
		Name: "std", NodePool: "cloud", BootProbe: `test "${X}" = 1`, TerminateAtDead: time.Minute,
		UserData: "${token} ${server} ${intent} ${pool} ${node_pool} ${secret} ${other} ${config}",
	}
	text := MachineData(p, Home{Kind: provider.KindLoopback, Server: "10.0.0.1:4647"}, "i1.tok", "i1")
	require.Contains(t, text, "i1.tok 10.0.0.1:4647 i1 std cloud "+hostSecret("i1.tok")+" ${other} client {")
	require.NotContains(t, hostSecret("i1.tok"), "tok")
	require.Contains(t, text, `servers = ["10.0.0.1:4647"]`)
	several := MachineData(p, Home{Kind: provider.KindLoopback, Server: "10.0.0.1:4647", Others: []string{"b:1", "c:1"}}, "i1.tok", "i1")
	require.Contains(t, several, `servers = ["10.0.0.1:4647", "b:1", "c:1"]`)
	require.Contains(t, text, `join_token = "i1.tok"`)
	require.Contains(t, text, `"test \"$${X}\" = 1"`, "the agent's own templates are not ours")
}

func TestWhatMachinesOfEachKindAreTold(t *testing.T) {
	t.Parallel()
	p := &fleet.Policy{Name: "std", NodePool: "cloud", Datacenter: "dc1", TerminateAtDead: time.Minute, Spot: fleet.SpotNever}
	home := Home{Kind: provider.KindLoopback, Server: "s:1", Datacenter: "dc1"}
	require.Equal(t, `client {
  enabled = true
  servers = ["s:1"]
  join_token = "t"
  node_pool = "cloud"
  machine {
    dead_after = "1m0s"
  }
}
`, MachineData(p, home, "t", "i"))

	home.Kind, home.Authority = provider.KindEC2, "PEM\n"
	p.Spot, p.Datacenter = fleet.SpotPrefer, "eu"
	script := MachineData(p, home, "t", "i")
	require.Contains(t, script, "#!/bin/sh", "a cloud's machine gets a script")
	text := agentConfig(p, home, "t")
	for _, line := range []string{
		`datacenter = "eu"`, `authority = "PEM\n"`, `notices = "` + MetadataService + `"`, `power_off = ["poweroff"]`,
	} {
		require.Contains(t, text, line)
	}

	home.Tokens = []string{"a", "b"}
	text = agentConfig(p, home, "t")
	require.Contains(t, text, `join_tokens = ["a", "b"]`)
	require.Contains(t, text, `metadata = "`+MetadataService+`"`, "it tells a machine which of the tokens is its own")
	require.NotContains(t, text, "join_token =")

	p.SSH = &fleet.SSH{}
	require.Empty(t, MachineData(p, home, "t", "i"), "it is told over ssh")
	home.Tokens = nil
	require.Equal(t, agentConfig(p, home, "t"), SSHData(p, home, "t", "i"))
	p.SSH.Config = "own ${token}"
	require.Equal(t, "own t", SSHData(p, home, "t", "i"))
}

func TestHowAMachineProvesThatItIsOurs(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	console := func(context.Context) ([]byte, error) { return []byte("keys"), nil }
	p := &fleet.Policy{BootProbe: "true", SSH: &fleet.SSH{User: "u", Port: 23, Key: file}}
	cfg, err := SSHConfig(p, "t", "agent", console)
	require.NoError(t, err)
	require.Equal(t, "u", cfg.User)
	require.Equal(t, 23, cfg.Port)
	require.Equal(t, "agent", cfg.Agent)
	require.NotNil(t, cfg.Host.Console)
	p.SSH.SecretFile = "/etc/secret"
	cfg, err = SSHConfig(p, "t", "agent", console)
	require.NoError(t, err)
	require.Equal(t, hostSecret("t"), cfg.Host.Secret)
	require.Nil(t, cfg.Host.Console)
	p.SSH.HostKeys = []string{"SHA256:x"}
	cfg, err = SSHConfig(p, "t", "agent", console)
	require.NoError(t, err)
	require.Equal(t, p.SSH.HostKeys, cfg.Host.Pinned)
	require.Empty(t, cfg.Host.Secret)
	p.SSH.Key = file + ".none"
	_, err = SSHConfig(p, "t", "agent", nil)
	require.Error(t, err)
}
