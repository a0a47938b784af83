package agent

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/network"
)

// describe makes the node as it is registered.
func (a *Agent) describe(ctx context.Context) *drover.Node {
	host := fingerprint.Probe(a.root.Path())
	cfg := a.cfg
	if cfg.Interface != "" || cfg.Family != "" {
		if err := host.On(cfg.Interface, cfg.Family); err != nil { // it went since the start: nobody else's address is shown in its place
			a.log.Warn("the node has no address", "error", err)
			host.IP, host.Interface = "127.0.0.1", "lo"
		}
	}
	n := &drover.Node{
		ID: a.identity.ID, SecretID: a.identity.Secret, Datacenter: cfg.Datacenter, Name: cfg.Name, HTTPAddr: cfg.HTTPAddr,
		Attributes: host.Attributes, Meta: metadata(cfg.Meta), NodeClass: cfg.NodeClass, NodePool: cfg.NodePool,
		Links: map[string]string{}, Drivers: map[string]*drover.DriverInfo{}, HostVolumes: a.hostVolumes(),
		HostNetworks: cfg.HostNetworks, NodeMaxAllocs: cfg.MaxAllocs,
		Status: drover.NodeStatusInit, SchedulingEligibility: drover.NodeEligible,
	}
	fill(&n.Name, host.Hostname)
	a.size(n, host)
	if a.devices != nil {
		n.NodeResources.Devices = a.devices.Look(ctx)
	}
	version := cfg.Version
	// It is the version of Nomad whose API this node speaks. Jobs compare it in constraints.
	fill(&version, "2.0.0")
	n.Attributes["nomad.version"], n.Attributes["drover.version"] = version, cfg.DroverVersion
	n.Attributes["node.region"] = cfg.Region
	n.Attributes["drover.secrets"] = secretsIn(a.root)
	a.describePlugins(n)
	for name, d := range a.drivers {
		info := d.Fingerprint(ctx)
		n.Drivers[name] = &info
		maps.Copy(n.Attributes, info.Attributes)
		if info.Detected && info.Healthy {
			n.Attributes["driver."+name] = "1"
		}
	}
	if a.networks != nil {
		offerNetworks(n, a.networks.Look(ctx))
	}
	n.ComputedClass = class(n)
	return n
}

// secretsIn says where tasks' secrets are.
func secretsIn(root allocdir.Root) string {
	if why := root.SecretsOnDisk(); why != "" {
		return "disk: " + why
	}
	if why := root.ShiftedSecretsOnDisk(); why != "" {
		return "tmpfs; of sandbox tasks, disk: " + why
	}
	return "tmpfs"
}

// size sets the node's resources: what the configuration says, else what was found. The newer and the older shapes of
// Nomad's API both carry them, and clients read either. Units are MHz and MB.
func (a *Agent) size(n *drover.Node, host fingerprint.Host) {
	cfg := a.cfg
	cpu, memory, disk := cfg.CPUMHz, cfg.MemoryMB, cfg.DiskMB
	fill(&cpu, host.CPUMHz)
	fill(&memory, host.MemoryMB)
	fill(&disk, host.DiskMB)
	cores := cfg.Cores.Lent(host.Cores)
	n.Attributes["cpu.reservablecores"] = strconv.Itoa(len(cores))
	cfg.Reserved.CPU += cfg.Cores.Kept(host.Cores, cpu)
	family, cidr := host.Address()
	n.NodeResources = &drover.NodeResources{
		Cpu:    drover.NodeCpuResources{CpuShares: cpu, TotalCpuCores: uint16(host.Cores), ReservableCpuCores: cores},
		Memory: drover.NodeMemoryResources{MemoryMB: memory}, Disk: drover.NodeDiskResources{DiskMB: disk},
		Networks: []*network.Resource{{Mode: "host", Device: host.Interface, CIDR: cidr, IP: host.IP}},
		NodeNetworks: []*drover.NodeNetworkResource{{
			Mode: "host", Device: host.Interface,
			Addresses: []drover.NodeNetworkAddress{{Family: family, Alias: "default", Address: host.IP}},
		}},
		MinDynamicPort: cmp.Or(cfg.MinDynamicPort, network.MinDynamicPort), MaxDynamicPort: cmp.Or(cfg.MaxDynamicPort, network.MaxDynamicPort),
	}
	n.NodeResources.NodeNetworks = append(n.NodeResources.NodeNetworks, fingerprint.HostNetworks(cfg.HostNetworks)...)
	n.ReservedResources = &drover.NodeReservedResources{
		Cpu:      drover.NodeReservedCpuResources{CpuShares: uint64(cfg.Reserved.CPU)},
		Memory:   drover.NodeReservedMemoryResources{MemoryMB: uint64(cfg.Reserved.MemoryMB)},
		Disk:     drover.NodeReservedDiskResources{DiskMB: uint64(cfg.Reserved.DiskMB)},
		Networks: drover.NodeReservedNetworkResources{ReservedHostPorts: cfg.ReservedPorts},
	}
	n.Resources = &drover.Resources{CPU: int(cpu), MemoryMB: int(memory), DiskMB: int(disk), Networks: n.NodeResources.Networks}
	n.Reserved = &drover.Resources{CPU: int(cfg.Reserved.CPU), MemoryMB: int(cfg.Reserved.MemoryMB), DiskMB: int(cfg.Reserved.DiskMB)}
}

// metadata returns the node's metadata: what the configuration says, and the keys that every node of Nomad has, which job files refer to.
func metadata(configured map[string]string) map[string]string {
	out := map[string]string{"connect.log_level": "info", "connect.proxy_concurrency": "1"}
	maps.Copy(out, configured)
	return out
}

// class hashes what makes nodes equal for constraints: everything that is not unique.
func class(n *drover.Node) string {
	h := fnv.New64a()
	add := func(prefix string, m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !strings.HasPrefix(k, "unique.") && !strings.Contains(k, ".unique.") {
				_, _ = fmt.Fprintf(h, "%s%s=%q\n", prefix, k, m[k])
			}
		}
	}
	_, _ = fmt.Fprintf(h, "%q %q %q\n", n.Datacenter, n.NodeClass, n.NodePool)
	add("attr.", n.Attributes)
	add("meta.", n.Meta)
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		_, _ = fmt.Fprintf(h, "driver.%s=%v\n", name, n.Drivers[name].Healthy)
	}
	return fmt.Sprintf("v1:%d", h.Sum64())
}
