package config

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config/pages"
	"github.com/drover-project/drover/internal/optional"
)

func TestFilesMergeInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a.hcl", `
data_dir = "/x"
ports { http = 5000 }
server { enabled = true }
client {
  enabled = true
  meta { rack = "r1" }
  reserved { cpu = 100 }
  host_volume "data" { path = "/data" }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
exec {
  environment "1" {
    image = "host"
  }
}`)
	write("b.json", `{"ports": {"rpc": 6000}, "client": {"meta": {"zone": "z"}}, "plugin": [{"raw_exec": {"config": {"enabled": false}}}]}`)
	file, err := Load(dir)
	require.NoError(t, err)
	a := Merge(Default(), file)
	require.NoError(t, a.Validate())
	require.Equal(t, 5000, a.Ports.HTTP)
	require.Equal(t, 6000, a.Ports.RPC)
	require.Equal(t, map[string]string{"rack": "r1", "zone": "z"}, a.Client.Meta)
	require.False(t, optional.Value(a.Driver("raw_exec").Enabled))
	require.Equal(t, "host", a.Exec.Environments[0].Image)
}

func TestUnknownKeysAreNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("data_dir = \"/x\"\nclient {\n  colour = 1\n}\n"), "x.hcl")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "x.hcl:3")
	require.ErrorContains(t, err, "colour")
	_, err = Parse([]byte(`{"ports": {"http": "many"}}`), "x.json")
	require.ErrorContains(t, err, "x.json")
}

func TestValidateReportsAllAtOnce(t *testing.T) {
	t.Parallel()
	a := Merge(Default(), &Agent{
		LogLevel: "loud", BindAddr: "here", Server: &Server{HeartbeatGrace: "soon"}, Exec: &Exec{PoseidonDriver: "dokcer"},
	})
	err := a.Validate()
	for _, want := range []string{
		"server.enabled", "data_dir", "log_level", "bind_addr", "heartbeat_grace", "exec.poseidon_driver: must be sandbox",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEnvironmentNamesWrongVariables(t *testing.T) {
	t.Parallel()
	_, err := Environment(func(name string) (string, bool) { return "x", name == "DROVER_HTTP_PORT" })
	require.ErrorContains(t, err, "DROVER_HTTP_PORT")
}

func TestNomadsOwnKeysAreAccepted(t *testing.T) {
	t.Parallel()
	// what hashicorp/nomad/api's test server writes
	a, err := Parse([]byte(`{"name":"n","disable_update_check":true,"ports":{"http":1,"rpc":2,"serf":3},
		"server":{"enabled":true,"bootstrap_expect":1,"upgrade_version":"1.2.3"},"client":{"enabled":false,"options":{"a":"b"}},
		"vault":{"enabled":false,"address":"x"},"acl":{"enabled":false},"telemetry":{"prometheus_metrics":true}}`), "x.json")
	require.NoError(t, err)
	require.Equal(t, []string{"disable_update_check", "server.upgrade_version", "client.options.a"}, a.Ignored)
	require.NotEmpty(t, WhyIgnored("client.options.a"))
	require.Equal(t, map[string]string{"a": "b"}, a.Client.Options)

	b, err := Parse([]byte(`
leave_on_interrupt = true
autopilot { cleanup_dead_servers = true }
client {
  host_network "public" { cidr = "10.0.0.0/8" }
  template {
    disable_file_sandbox = true
    function_denylist    = ["sprig_*"]
    wait { min = "2s" }
    wait_bounds {
      min = "1s"
      max = "1m"
    }
  }
  reserved { cores = "0" }
  reservable_cores         = "0-3"
  preferred_address_family = "ipv6"
}
server {
  job_max_priority     = 1000
  job_default_priority = 60
  job_tracked_versions = 20
  enable_event_broker  = false
  event_buffer_size    = 200
  enabled_schedulers   = ["service", "_core"]
  raft_multiplier      = 5
}
ui {
  enabled = false
  show_cli_hints = true
  label { text = "ours" }
}
keyring "aead" { active = true }
plugin "docker" {
  config {
    volumes { enabled = true }
    allow_caps = ["chown"]
    logging { type = "json-file" }
    gc {
      image_delay = "1h"
      dangling_containers { enabled = true }
    }
  }
}
consul { address = "127.0.0.1:8500" }
`), "x.hcl")
	require.NoError(t, err)
	m := Merge(Merge(Default(), a), b)
	require.Subset(t, m.Ignored, []string{
		"client.template.disable_file_sandbox", "disable_update_check",
		"plugin.config.gc.dangling_containers", "plugin.config.logging",
	})
	require.Equal(t, &HostNetwork{Name: "public", CIDR: "10.0.0.0/8"}, m.Client.HostNetworks[0])
	require.Equal(t, "0", m.Client.Reserved.Cores)
	require.Equal(t, []string{"service"}, m.Server.Schedulers())
	require.True(t, m.Server.NoEvents())
	require.True(t, m.UI.Off())
	require.Contains(t, m.Ignored, "ui.show_cli_hints")
	require.Equal(t, &pages.Label{Text: "ours"}, m.UI.Label)
	docker := m.Driver("docker")
	require.True(t, optional.Value(docker.Volumes.Enabled))
	require.Equal(t, []string{"chown"}, docker.AllowCaps)
	on, delay := docker.ImageGC()
	require.True(t, on)
	require.Equal(t, "1h", delay)
}

func TestWhereAKeyIsUnknownMatters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`chroot_env = "/opt"`:                           `"chroot_env"`,
		`server { chroot_env = "/opt" }`:                `"chroot_env"`,
		`server { thing { } }`:                          `"thing"`,
		"plugin \"docker\" {\n config {\n x = 1\n }\n}": `"x"`,
		`telemetry { colour = 1 }`:                      `"colour"`,
	} {
		_, err := Parse([]byte(text), "x.hcl")
		require.ErrorContains(t, err, want, text)
	}
	_, err := Parse([]byte(`{"client": {"reserved": {"cups": 1}}}`), "x.json")
	require.ErrorContains(t, err, "cups")
	_, err = Parse([]byte(`{"label": "x"}`), "x.json")
	require.ErrorContains(t, err, "label")
}

func TestWhatOthersAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ advertise, served, want string }{
		{"", "127.0.0.1:4646", "127.0.0.1:4646"},
		{"", "[::]:4646", "10.0.0.7:4646"},
		{"", "0.0.0.0:4646", "10.0.0.7:4646"},
		{"10.1.1.1", "0.0.0.0:4646", "10.1.1.1:4646"},
		{"10.1.1.1:80", "0.0.0.0:4646", "10.1.1.1:80"},
	} {
		a := Default()
		a.Advertise = &Addresses{HTTP: c.advertise}
		require.Equal(t, c.want, a.AdvertisedHTTP(c.served, "10.0.0.7"), c)
	}
	a := Default()
	a.Client.Options = map[string]string{"driver.raw_exec.enable": "1"}
	require.True(t, optional.Value(a.Driver("raw_exec").Enabled))
	require.Nil(t, a.Driver("docker").Enabled)
	a.Client.Options["driver.denylist"] = "docker, raw_exec"
	require.Equal(t, new(false), a.Driver("raw_exec").Enabled)
	require.Equal(t, new(false), a.Driver("docker").Enabled)
	a.Client.Options = map[string]string{"driver.allowlist": "docker"}
	require.Nil(t, a.Driver("docker").Enabled)
	require.Equal(t, new(false), a.Driver("sandbox").Enabled)
}

func TestFreeKeysInEveryDialect(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"assigned": "client {\n  options = {\n    \"driver.raw_exec.enable\" = \"1\"\n    plain = true\n  }\n  meta = { \"my.key\" = 3 }\n}",
		"quoted": "data_dir = \"/x\"\nclient {\n  enabled = true\n  options {\n    \"driver.raw_exec.enable\" = \"1\"\n" +
			"    \"plain\" = true\n  }\n  meta {\n    \"my.key\" = 3\n  }\n}\nserver {\n  enabled = true\n}",
		"json": `{"client": {"options": {"driver.raw_exec.enable": "1", "plain": true}, "meta": [{"my.key": 3}]}}`,
	} {
		a, err := Parse([]byte(text), "x")
		require.NoError(t, err, name)
		require.Equal(t, map[string]string{"driver.raw_exec.enable": "1", "plain": "true"}, a.Client.Options, name)
		require.Equal(t, map[string]string{"my.key": "3"}, a.Client.Meta, name)
	}
	_, err := Parse([]byte("client {\n  options {\n    \"a.b\" = 1\n  }\n  colour = 1\n}"), "x.hcl")
	require.ErrorContains(t, err, "x.hcl:5")
	_, err = Parse([]byte("\"quoted\" = 1"), "x.hcl")
	require.ErrorContains(t, err, "x.hcl:1")
}

// TestLeaveOfTheMachine: paths and the network of the machine are two keys, and -dev, which allows raw_exec, gives leave.
func TestLeaveOfTheMachine(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`plugin "docker" {
  config {
    allow_host_network = true
    allow_devices = ["/dev/nvidia*"]
  }
}
plugin "sandbox" {
  config {
    allow_host_mounts = true
  }
}`), "x.hcl")
	require.NoError(t, err)
	docker, sandbox := a.Driver("docker"), a.Driver("sandbox")
	require.True(t, optional.Value(docker.AllowHostNetwork))
	require.False(t, optional.Value(docker.AllowHost))
	require.Equal(t, []string{"/dev/nvidia*"}, docker.AllowDevices)
	require.True(t, optional.Value(sandbox.AllowHost))
	require.False(t, optional.Value(sandbox.AllowHostNetwork))
	dev := Merge(Default(), DevMode()).Driver("docker")
	require.True(t, optional.Value(dev.AllowHostNetwork))
	require.False(t, optional.Value(dev.AllowPrivileged))
}

func TestEgress(t *testing.T) {
	t.Parallel()
	file, err := Parse([]byte(`
data_dir = "/x"
client {
  enabled = true
  egress {
    allow       = ["10.0.0.0"]
    allow_jobs  = ["fd00::"]
    connections = -1
  }
}`), "x.hcl")
	require.NoError(t, err)
	err = Merge(Default(), file).Validate()
	require.ErrorContains(t, err, `client.egress.allow: "10.0.0.0" is no network`)
	require.ErrorContains(t, err, `client.egress.allow_jobs: "fd00::"`)
	require.ErrorContains(t, err, `client.egress.connections: must be from 0 (no bound)`)
	file, err = Parse([]byte("client {\n  egress {\n    allow_jobs = []\n  }\n}"), "x.hcl")
	require.NoError(t, err)
	require.NotNil(t, Merge(Default(), file).Client.Egress.AllowJobs, "an empty list closes what is open by default")
}

func TestArtifact(t *testing.T) {
	t.Parallel()
	text := "data_dir = \"/x\"\nclient {\n  enabled = true\n  artifact {\n" +
		"    allow = [\"127.0.0.0/8\", \"localhost\"]\n    git_timeout = \"never\"\n    hg_timeout = \"1m\"\n    http_max_size = \"1 pound\"\n" +
		"    http_read_timeout = \"soon\"\n    decompression_file_count_limit = -1\n" +
		"    filesystem_isolation_extra_paths = [\"d:rw:/opt\", \"opt\", \"f:r:/etc/x\"]\n  }\n}\n"
	file, err := Parse([]byte(text), "x.hcl")
	require.NoError(t, err)
	err = Merge(Default(), file).Validate()
	require.ErrorContains(t, err, `client.artifact.allow: "localhost" is neither a network such as 10.0.0.0/8 nor an address`)
	require.ErrorContains(t, err, `client.artifact.http_max_size: "1 pound" is no size such as 1M or 64KiB`)
	require.ErrorContains(t, err, `client.artifact.http_read_timeout: "soon" is no duration`)
	require.ErrorContains(t, err, `client.artifact.decompression_file_count_limit: must be from 0 to`)
	require.ErrorContains(t, err, `client.artifact.git_timeout: "never" is no duration`)
	require.ErrorContains(t, err, `client.artifact.filesystem_isolation_extra_paths: "d:rw:/opt": want [d|f]:[r|rx]:PATH`)
	require.ErrorContains(t, err, `client.artifact.filesystem_isolation_extra_paths: "opt": want an absolute path`)
	require.NotContains(t, err.Error(), "/etc/x")
	require.Equal(t, []string{"client.artifact.hg_timeout"}, file.Ignored)

	bounds := func(keys string) Artifacts {
		file, err := Parse([]byte("client {\n  artifact {\n"+keys+"\n  }\n}\n"), "x.hcl")
		require.NoError(t, err)
		got, err := file.Client.Artifacts()
		require.NoError(t, err)
		return got
	}
	require.Zero(t, bounds(""), "the node's own")
	require.Equal(t, Artifacts{
		HTTPTimeout: 5 * time.Second, GitTimeout: time.Minute, Cloud: true, Read: []string{"/opt/git", "/x"},
		Size: 100e9, Unpacked: 1 << 20, UnpackedMany: 4096,
	},
		bounds("git_timeout = \"1m\"\ncloud_credentials = true\nfilesystem_isolation_extra_paths = [\"d:rx:/opt/git\", \"/x\"]\n"+
			"http_read_timeout = \"5s\"\nhttp_max_size = \"100GB\"\ndecompression_size_limit = \"1MiB\"\n"+
			"decompression_file_count_limit = 4096"))
	require.Equal(t, Artifacts{
		HTTPTimeout: math.MaxInt64, S3Timeout: math.MaxInt64, Size: maxArtifact, Unpacked: maxArtifact, UnpackedMany: math.MaxInt32,
	},
		bounds("s3_timeout = \"0\"\nhttp_read_timeout = \"0\"\nhttp_max_size = \"0\"\n"+
			"decompression_size_limit = \"0\"\ndecompression_file_count_limit = 0"))
}

// Blocks of what Drover has no part in are told, and so is a check of names that stays on.
func TestForeignBlocks(t *testing.T) {
	t.Parallel()
	for text, told := range map[string][]string{
		"consul {\n  address = \"127.0.0.1:8500\"\n}\nvault {\n  address = \"x\"\n}": {"consul", "vault"},
		"consul {\n  enabled = false\n}\ntls {\n  verify_server_hostname = true\n}":  nil,
		"tls {\n  verify_server_hostname = false\n}":                                 {"tls.verify_server_hostname"},
	} {
		file, err := Parse([]byte(text), "x.hcl")
		require.NoError(t, err)
		require.Equal(t, told, file.Ignored, text)
	}
}

// Keys of Nomad's drivers about users, namespaces and what tasks see. One in the block of a driver that does not read it restricts nothing,
// so it is an error.
func TestKeysOfNomadsDrivers(t *testing.T) {
	t.Parallel()
	const head = "data_dir = \"/d\"\nclient {\n  enabled = true\n  servers = [\"127.0.0.1:4647\"]\n  join_token = \"t\"\n"
	load := func(text string) *Agent {
		a, err := Parse([]byte(head+text), "x.hcl")
		require.NoError(t, err)
		return Merge(Default(), a)
	}
	a := load("chroot_env {\n\"/opt/app\" = \"/app\"\n\"/usr\" = \"/usr\"\n}\n}\n" +
		"plugin \"exec\" {\nconfig {\ndenied_host_uids = \"0,10-15\"\ndefault_ipc_mode = \"host\"\nallow_caps = [\"all\"]\n}\n}\n" +
		"plugin \"raw_exec\" {\nconfig {\ndenied_envvars = [\"AWS_*\"]\n}\n}")
	require.NoError(t, a.Validate())
	require.Equal(t, map[string]string{"/opt/app": "/app", "/usr": "/usr"}, a.Client.ChrootEnv)
	require.Equal(t, "0,10-15", a.Driver("exec").DeniedUIDs)
	for text, says := range map[string]string{
		"chroot_env {\n\"/proc\" = \"/proc\"\n}\n}":                            "client.chroot_env: \"/proc\": a task has a /proc of its own",
		"}\nplugin \"exec\" {\nconfig {\ndenied_host_gids = \"a-b\"\n}\n}":     `plugin.exec.config.denied_host_gids: "a-b" is no id`,
		"}\nplugin \"sandbox\" {\nconfig {\ndenied_host_uids = \"0\"\n}\n}":    "config.denied_host_uids: the driver sandbox has no such key",
		"}\nplugin \"java\" {\nconfig {\ndefault_pid_mode = \"host\"\n}\n}":    "plugin.java.config.default_pid_mode: only private can be had",
		"}\nplugin \"exec\" {\nconfig {\ndefault_ipc_mode = \"some\"\n}\n}":    "plugin.exec.config.default_ipc_mode: must be private or host",
		"}\nplugin \"docker\" {\nconfig {\ndenied_envvars = [\"A\"]\n}\n}":     "config.denied_envvars: the driver docker has no such key",
		"}\nplugin \"exec\" {\nconfig {\nargs_allowlist = [\"-device\"]\n}\n}": "config.args_allowlist: the driver exec has no such key",
		"}\nplugin \"qemu\" {\nconfig {\nimage_paths = [\"images\"]\n}\n}":     "plugin.qemu.config.image_paths: must be absolute paths",
		"}\nplugin \"exec\" {\nconfig {\nno_pivot_root = true\n}\n}":           "plugin.exec.config.no_pivot_root: cannot be had",
		"}\nplugin \"virt\" {\nconfig {\n}\n}":                                 "plugin.virt: is not a driver of ours (raw_exec, exec, java,",
		"}\nplugin \"docker\" {\nconfig {\nsocket_path = \"/x\"\n}\n}":         "config.socket_path: the driver docker has no such key",
		"}\nplugin \"podman\" {\nconfig {\nsocket_path = \"tcp://x:1\"\n}\n}":  "config.socket_path: must be a path, or unix:// and a path",
	} {
		require.ErrorContains(t, load(text).Validate(), says)
	}
}
