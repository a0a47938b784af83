package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/fleet/bootstrap/sshtest"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// sshCloud is an emulated EC2 whose machines are this one, reached over an ssh server in the test, and the
// configuration of a server that buys there. Its folders are below dir, its HTTP port is free, and nobody turns it off.
// The host key is the one on the machines' console.
func sshCloud(t *testing.T, dir, secret string) (block string, cloud *ec2test.Cloud, machine *sshtest.Server) {
	t.Helper()
	t.Cleanup(func() { endMachines(t, dir) })
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	text, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(text), 0o600))
	machine = sshtest.New(t)
	machine.User, err = ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	machine.Moved = map[string]string{
		"/usr/local/bin": filepath.Join(dir, "bin"), "/var/lib/drover": filepath.Join(dir,
			"state"), `"poweroff"`: `"true"`, "-data-dir": "-http-port 0 -data-dir",
	}
	cloud = ec2test.New(t)
	cloud.With(func(c *ec2test.Cloud) {
		c.Wall, c.Address = true, "127.0.0.1"
		c.Console = "-----BEGIN SSH HOST KEY KEYS-----\n" + string(ssh.MarshalAuthorizedKey(machine.HostKey())) + "-----END SSH HOST KEY " +
			"KEYS-----\n"
	})
	return fmt.Sprintf(`server {
  enabled = true
}
fleet {
  provider "ec2" {
    region     = %q
    endpoint   = %q
    access_key = %q
    secret_key = %q
  }
  pool "aws" {
    provider   = "ec2"
    node_pool  = "default"
    zones      = ["eu-test-1a"]
    image      = "ami-1"
    max        = 1
    idle       = "2s"
    adopt_grace = "1s"
    boot_probe = "test -d /tmp"
    ssh {
      key  = %q
      port = %d
      config = "${config}\nplugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n"
    }
    type "m5.large" {
      cpu    = 2000
      memory = 512
      price  = 0.1
    }
  }
}
`, ec2test.Region, cloud.URL, ec2test.AccessKey, secret, key, machine.Port()), cloud, machine
}

// Machines of EC2 are made ours over ssh, as for images without user data: our program is uploaded, the agent started,
// a job runs on it, and the machine is returned.
func TestMachinesOverSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	block, cloud, machine := sshCloud(t, dir, ec2test.SecretKey)
	a := start(t, append([]string{"-rpc-port", freePort(t)}, config(t, filepath.Join(dir, "data"), block)...)...)
	ran := filepath.Join(dir, "ran")
	_, _, err := a.nomad().Jobs().Register(fleetJob("work", 2, "echo $NOMAD_ALLOC_INDEX >> "+ran), nil)
	require.NoError(t, err)
	eventually(t, "the work", func() (bool, string) {
		got := lines(t, ran)
		return len(got) == 2, fmt.Sprint(a.machines(), a.Output())
	})
	require.Contains(t, machine.Said(), "agent.hcl")
	eventually(t, "the machine's end", func() (bool, string) { return len(a.machines()) == 0, fmt.Sprint(a.machines()) })
	list := cloud.Instances()
	require.NotEmpty(t, list)
	for _, i := range list {
		require.False(t, i.Ended.IsZero(), "it costs")
		require.Empty(t, i.UserData)
	}
	require.NotContains(t, strings.ToLower(a.Output()), "somebody may be in between")
}

// A pool of EC2 is tried with one machine over ssh. With wrong credentials, the error says what to change.
func TestFleetCheckOverSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	block, cloud, _ := sshCloud(t, dir, ec2test.SecretKey)
	out, err := exec.Command(program.Binary, append([]string{"fleet", "check", "aws"},
		config(t, filepath.Join(dir, "data"), block)...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, want := range []string{"ssh: host key", "is on the console", "ssh: start", "home", "node ", "is gone", "can buy machines"} {
		require.Contains(t, string(out), want)
	}
	require.Len(t, cloud.Instances(), 1)
	require.False(t, cloud.Instances()[0].Ended.IsZero())

	dir = t.TempDir()
	block, cloud, _ = sshCloud(t, dir, "wrong")
	out, err = exec.Command(program.Binary, append([]string{"fleet", "check", "aws"},
		config(t, filepath.Join(dir, "data"), block)...)...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "fleet.provider.ec2: the credentials are refused")
	require.Contains(t, string(out), "SignatureDoesNotMatch")
	require.Empty(t, cloud.Instances())
}
