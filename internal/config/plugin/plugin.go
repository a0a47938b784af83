package plugin

import (
	"cmp"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Block configures a driver, or a vendor's devices, as in Nomad: plugin "raw_exec" { config { enabled = true } }.
type Block struct {
	Name   string   `hcl:"name,label"`
	Config *Config  `hcl:"config,block"`
	Rest   hcl.Body `hcl:",remain" json:"-"`
}

// Config holds the keys of all drivers and devices. A key names those that read it where not all do.
type Config struct {
	// switch the driver or the devices; default: false for raw_exec and mock_driver, true for all others
	Enabled *bool `hcl:"enabled,optional"`
	// sandbox, docker: jobs may mount paths of the machine; default false
	AllowHost *bool `hcl:"allow_host_mounts,optional"`
	// sandbox, exec, java, qemu, docker: jobs may have the machine's network; default false
	AllowHostNetwork *bool `hcl:"allow_host_network,optional"`
	// sandbox: folder of unpacked images, which needs no other agent's; path; default: images in data_dir
	ImageDir string `hcl:"image_dir,optional"`
	Endpoint string `hcl:"endpoint,optional"` // docker: address of dockerd; default: DOCKER_HOST, else its socket
	// podman: the socket of podman's service, for root, which switches the driver on; a path, or unix:// and a path; default: with
	// enabled = true /run/podman/podman.sock
	SocketPath      string `hcl:"socket_path,optional"`
	NoCgroups       *bool  `hcl:"no_cgroups,optional"`       // raw_exec: use no control groups; default false
	AllowPrivileged *bool  `hcl:"allow_privileged,optional"` // docker: jobs may be privileged; default false
	// sandbox, exec, java, docker: capabilities that jobs may add; exec and java: that jobs may have, "all" for all; default: docker's
	// usual set without mknod and net_raw; exec and java: docker's without net_raw; sandbox: none
	AllowCaps []string `hcl:"allow_caps,optional"`
	// exec, java: only false can be had: a task's root is changed by pivot_root, which no machine whose root is a ramdisk lets
	NoPivotRoot *bool `hcl:"no_pivot_root,optional"`
	// exec, java: processes of tasks that say nothing; only "private" can be had
	DefaultPIDMode string `hcl:"default_pid_mode,optional"`
	// exec, java: "host" lets tasks share the machine's System V IPC, and does it for those that say nothing; default private
	DefaultIPCMode string `hcl:"default_ipc_mode,optional"`
	// exec, java, raw_exec: users of the machine that no task runs as, such as "0,10-15"
	DeniedUIDs string `hcl:"denied_host_uids,optional"`
	// exec, java, raw_exec: groups of the machine that no task's user is in, such as "0,10-15"
	DeniedGIDs string `hcl:"denied_host_gids,optional"`
	// raw_exec: variables that no task gets, with * at the begin or the end for any characters: "AWS_*"
	DeniedEnv []string `hcl:"denied_envvars,optional"`
	// qemu: folders of the machine whose images jobs may run; default none but the allocation's own
	ImagePaths []string `hcl:"image_paths,optional"`
	// qemu: options that jobs may pass to it, such as "-device"; default all that reach nothing outside of the task
	ArgsAllowList []string `hcl:"args_allowlist,optional"`
	// docker: runtimes that jobs may name; default: runc, crun, youki, runsc, kata*, sysbox-runc, nvidia
	AllowRuntimes []string `hcl:"allow_runtimes,optional"`
	// docker: patterns of devices that jobs may use: "/dev/nvidia*"
	AllowDevices []string `hcl:"allow_devices,optional"`
	// docker: patterns of docker networks that jobs may join
	AllowNetworks []string `hcl:"allow_networks,optional"`
	// docker: patterns of volume drivers that jobs may name, with any options
	AllowVolumeDrivers []string `hcl:"allow_volume_drivers,optional"`
	AllowSysctls       []string `hcl:"allow_sysctls,optional"` // docker: patterns of sysctls that jobs may set
	AllowUlimits       []string `hcl:"allow_ulimits,optional"` // docker: patterns of ulimits that jobs may set
	ExtraLabels        []string `hcl:"extra_labels,optional"`  // docker: labels that containers get, as Nomad's
	// docker: processes of a task that says nothing, and the highest that others may say; 0 is no limit; default 0
	PidsLimit int64 `hcl:"pids_limit,optional"`
	// docker: how long a pull may make no progress; duration
	PullActivityTimeout string `hcl:"pull_activity_timeout,optional"`
	// nvidia, amd, intel: ids of devices that jobs do not get
	IgnoredGPUs []string `hcl:"ignored_gpu_ids,optional"`
	// nvidia, amd, intel: how often devices are looked for, the shortest of the three; duration; default 1m
	FingerprintPeriod string `hcl:"fingerprint_period,optional"`
	// nvidia: program that tells about devices; path; default: nvidia-smi of PATH
	Tool string `hcl:"tool,optional"`
	// nvidia, amd, intel: folder whose proc, sys and dev are looked at; path; default /
	Root    string   `hcl:"root,optional"`
	GC      *GC      `hcl:"gc,block"`
	Volumes *Volumes `hcl:"volumes,block"`
	Auth    *Auth    `hcl:"auth,block"`
	TLS     *TLS     `hcl:"tls,block"`
	Rest    hcl.Body `hcl:",remain" json:"-"`
}

// deviceNames are the names of the plugins for devices; NVIDIA's has three in Nomad's documentation.
var deviceNames = map[string]string{
	"nvidia": "nvidia", "nvidia-gpu": "nvidia", "nomad-device-nvidia": "nvidia", "amd": "amd", "intel": "intel",
}

// driverNames are the names of plugins for drivers that are called otherwise.
var driverNames = map[string]string{"nomad-driver-podman": "podman"}

// drivers are those that a block can be about.
var drivers = []string{"raw_exec", "exec", "java", "qemu", "sandbox", "docker", "podman", "mock_driver"}

// Driver is the driver that the block is about, by its own name.
func (p *Block) Driver() string { return cmp.Or(driverNames[p.Name], p.Name) }

// Vendor is that of the devices that the block is about: nvidia, amd, intel; "" if it is about none.
func (p *Block) Vendor() string { return deviceNames[p.Name] }

// Socket is the socket's address; "" if there is none.
func (p Config) Socket() string {
	if p.SocketPath == "" || strings.Contains(p.SocketPath, "://") {
		return p.SocketPath
	}
	return "unix://" + p.SocketPath
}
