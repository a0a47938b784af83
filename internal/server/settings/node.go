package settings

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/artifact"
	"github.com/drover-project/drover/internal/node/cloud"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/internal/version"
)

// Process is what the configuration does not say of a node.
type Process struct {
	DataDir     string // the agent's
	Forgetful   bool   // nothing is to outlive the process
	HTTPAddr    string // host:port where others reach its faces
	SharedCores bool   // no processors can be given to a task alone
	Clock       clock.Clock
}

// Node is what the configuration says of the node. Errors: Invalid.
func Node(all *config.Agent, p Process) (agent.Config, error) {
	cfg := all.Client
	out := agent.Config{
		DataDir: p.DataDir, AllocDir: cfg.AllocDir, StateDir: cfg.StateDir,
		InMemory: p.Forgetful, SecretsInMemory: true, ShieldFolders: true, StopOnExit: all.Dev,
		Name: all.Name, Region: all.Region, Datacenter: all.Datacenter, NodePool: cfg.NodePool, NodeClass: cfg.NodeClass, Meta: cfg.Meta,
		MinDynamicPort: cfg.MinDynamicPort, MaxDynamicPort: cfg.MaxDynamicPort,
		HTTPAddr: p.HTTPAddr, Version: version.Nomad, DroverVersion: version.Version,
		CPUMHz: int64(cfg.CPUTotal), MemoryMB: int64(cfg.MemoryTotalMB), DiskMB: int64(cfg.DiskTotalMB),
		MaxAllocs: cfg.NodeMaxAllocs, HostVolumes: hostVolumes(cfg), VolumesDir: cfg.HostVolumesDir, VolumePaths: cfg.HostVolumePaths,
		VolumePluginDir: cmp.Or(cfg.HostVolumePluginDir, filepath.Join(p.DataDir, "host_volume_plugins")),
		HostNetworks:    hostNetworks(cfg), Interface: cfg.NetworkInterface, Family: cfg.AddressFamily,
		MaxKillTimeout: config.Duration(cfg.MaxKillTimeout, 0), Cores: cores(cfg, p.SharedCores),
		GC: agent.GCConfig{
			MaxAllocs: cfg.GCMaxAllocs, DiskPercent: cfg.GCDiskUsage, InodePercent: cfg.GCInodeUsage,
			Interval: config.Duration(cfg.GCInterval, 0), MinAge: config.Duration(cfg.GCMinAge, 0), MaxAge: config.Duration(cfg.GCMaxAge, 0),
		},
		PublishAllocMetrics: optional.Value(all.Telemetry.AllocMetrics),
		CollectionInterval:  config.Duration(all.Telemetry.CollectionInterval, 0),
	}
	if cfg.NetworkInterface != "" {
		if err := new(fingerprint.Host{Attributes: map[string]string{}}).On(cfg.NetworkInterface, cfg.AddressFamily); err != nil {
			return out, drover.Errorf(drover.Invalid, "client.network_interface: %w", err)
		}
	}
	fetched, err := cfg.Artifacts()
	if err != nil {
		return out, err
	}
	out.Artifacts = artifacts(fetched, p.Clock)
	if cfg.Template != nil {
		out.Templates.Deny = cfg.Template.FunctionDenylist
		out.Templates.Wait, out.Templates.Bounds = cfg.Template.Waits()
		r := &out.Templates.Retry
		r.Attempts, r.First, r.Most = cfg.Template.Retries()
		r.Wait = config.Duration(cfg.Template.BlockWait, 0)
	}
	if r := cfg.Reserved; r != nil {
		out.Reserved = drover.Capacity{CPU: int64(r.CPU), MemoryMB: int64(r.MemoryMB), DiskMB: int64(r.DiskMB)}
		out.ReservedPorts = r.ReservedPorts
	}
	for _, n := range cfg.HostNetworks { // numbers are given out once a node, whatever the address
		if n.ReservedPorts != "" {
			out.ReservedPorts = strings.TrimPrefix(out.ReservedPorts+","+n.ReservedPorts, ",")
		}
	}
	return out, nil
}

// cores are those that can be lent. none says that the machine has no cpusets.
func cores(cfg *config.Client, none bool) fingerprint.Cores {
	out := fingerprint.Cores{None: none}
	out.Of, _ = validation.ParseIDs(cfg.ReservableCores) // they were validated
	if cfg.Reserved != nil {
		out.But, _ = validation.ParseIDs(cfg.Reserved.Cores)
	}
	return out
}

// hostNetworks are the names that the configuration gives to addresses of the machine.
func hostNetworks(cfg *config.Client) map[string]*drover.HostNetworkInfo {
	out := map[string]*drover.HostNetworkInfo{}
	for _, n := range cfg.HostNetworks {
		out[n.Name] = &drover.HostNetworkInfo{Name: n.Name, CIDR: n.CIDR, Interface: n.Interface, ReservedPorts: n.ReservedPorts}
	}
	return out
}

// hostVolumes are the volumes of the configuration by their names, as the node reports them to control.
func hostVolumes(cfg *config.Client) map[string]*drover.HostVolumeInfo {
	out := map[string]*drover.HostVolumeInfo{}
	for _, v := range cfg.HostVolumes {
		out[v.Name] = &drover.HostVolumeInfo{Path: v.Path, ReadOnly: optional.Value(v.ReadOnly)}
	}
	return out
}

// artifacts says what the node fetches. Who it is in its cloud is found out when a bucket is asked.
func artifacts(c config.Artifacts, now clock.Clock) agent.Artifacts {
	out := agent.Artifacts{
		Timeouts: artifact.Timeouts{HTTP: c.HTTPTimeout, Git: c.GitTimeout, S3: c.S3Timeout, GCS: c.GCSTimeout},
		Size:     c.Size, Unpacked: c.Unpacked, Files: c.UnpackedMany, Allow: c.Allow, Read: c.Read,
	}
	if c.Cloud {
		out.Cloud = artifact.Cloud{Buckets: c.Buckets, AWS: ec2.NewChain(ec2.ChainConfig{}), Google: (&artifact.GoogleNode{Clock: now}).Token}
	}
	return out
}

// Clouds says which clouds are asked about the machine.
func Clouds(c *config.Client, now clock.Clock, log *slog.Logger) cloud.Config {
	return cloud.Config{
		Asked: func(name string) bool { return clouds.Allowed(c.Options, "fingerprint", name) },
		Retry: func(name string) (r cloud.Retry) {
			r.Attempts, r.Interval, r.Exit = clouds.Retry(c.Fingerprints, name)
			return r
		},
		Clock: now, Log: log,
	}
}

// Machine is what the agent does for its machine.
func Machine(m *config.Machine) machine.Config {
	return machine.Config{
		BootProbe: m.BootProbe, RunProbe: m.RunProbe, PowerOff: m.PowerOff, Notices: m.Notices,
		Idle: config.Duration(m.DeadAfter, 0), Busy: config.Duration(m.DeadBusy, 0),
		ProbeEvery: config.Duration(m.ProbeEvery, 0), ProbeTimeout: config.Duration(m.ProbeWithin, 0),
	}
}
