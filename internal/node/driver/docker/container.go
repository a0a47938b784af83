package docker

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/options"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	group "github.com/drover-project/drover/network"
)

// Labels of our containers. Nomad's are there too, for tools that look for them.
const (
	labelOwner = "dev.drover.owner"
	labelID    = "dev.drover.task"
)

// options of the container: everything that does not need the daemon.
func (d *Driver) options(spec *driver.Spec, c taskConfig, img images.Image, init first) (client.ContainerCreateOptions, error) {
	mounts, err := d.mounts(spec, c, init)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	binds, err := d.binds(spec, c)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	resources, err := d.resources(spec, c)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	exposed, bindings, err := ports(spec, c)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	files, err := c.files(spec)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	mounts = append(mounts, files...)
	// Docker refuses a host name together with another container's network.
	hostname := c.hostname
	if c.network == hostMode || strings.HasPrefix(c.network, containerMode) {
		hostname = ""
	}
	if c.joined { // docker has these of a container with a network of its own only; see files
		c.dns, c.dnsSearch, c.dnsOptions, c.extraHosts, c.mac = nil, nil, nil, nil, ""
	}
	config := &container.Config{
		Image: img.ID, Hostname: hostname, User: "0:0", WorkingDir: workDir(c, img), Labels: d.labels(spec, c), ExposedPorts: exposed,
		Entrypoint: append([]string{ownPath + "/init"}, init.args...), Cmd: []string{}, OpenStdin: init.stdin,
		Env:         append(initEnv(c), runtimeEnv(spec)...),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, // it would be an exec of docker's, every 30 s
	}
	if d.cfg.Podman { // it makes a timer all the same
		config.Healthcheck.Interval = 365 * 24 * time.Hour
	}
	host := &container.HostConfig{
		LogConfig: container.LogConfig{Type: "none"}, NetworkMode: container.NetworkMode(c.network), PortBindings: bindings,
		CapAdd: c.capAdd, CapDrop: c.capDrop, DNS: addrs(c.dns), DNSOptions: c.dnsOptions, DNSSearch: c.dnsSearch, ExtraHosts: c.extraHosts,
		IpcMode: container.IpcMode(c.ipcMode), PidMode: container.PidMode(c.pidMode), UsernsMode: container.UsernsMode(c.usernsMode),
		Privileged: c.privileged, ReadonlyRootfs: c.readOnly, Tmpfs: tmpfs(spec, c),
		UTSMode: container.UTSMode(c.utsMode), CgroupnsMode: container.CgroupnsMode(c.cgroupns), StorageOpt: c.storage,
		ShmSize: shm(spec, c), Sysctls: c.sysctl, Runtime: c.runtime, Resources: resources, Mounts: mounts, Binds: binds, Init: new(false),
		VolumeDriver: c.volumeDriver,
	}
	if drop := d.dropped(spec, c); len(drop) > 0 { // drover-init could not start anybody's program otherwise
		host.CapAdd = slices.Concat(c.capAdd, slices.Sorted(maps.Keys(neededCaps)))
		host.CapDrop = withoutNeeded(drop)
	}
	host.SecurityOpt = c.security()
	out := client.ContainerCreateOptions{Config: config, HostConfig: host, Name: containerName(spec)}
	out.NetworkingConfig, err = place(c)
	return out, err
}

// place is the container's place in its network; nil if nothing is said about it.
func place(c taskConfig) (*network.NetworkingConfig, error) {
	if c.network == "" || c.joined || len(c.aliases) == 0 && c.ipv4 == "" && c.ipv6 == "" && c.mac == "" {
		return nil, nil // as the daemon has it
	}
	e := &network.EndpointSettings{Aliases: c.aliases}
	if c.ipv4 != "" || c.ipv6 != "" {
		e.IPAMConfig = &network.EndpointIPAMConfig{}
	}
	for text, to := range map[string]func(netip.Addr){
		c.ipv4: func(a netip.Addr) { e.IPAMConfig.IPv4Address = a }, c.ipv6: func(a netip.Addr) { e.IPAMConfig.IPv6Address = a },
	} {
		if a, err := parseAddr(text); err == nil { // check has complained
			to(a)
		}
	}
	if c.mac != "" {
		mac, err := net.ParseMAC(c.mac)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "mac_address: %w", err)
		}
		e.MacAddress = network.HardwareAddr(mac)
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{c.network: e}}, nil
}

// security is the task's own options, with no-new-privileges before them unless the task is privileged or says something about it. It
// keeps set-user-id programs of the image from giving more rights, which only users without rights would need.
func (c *taskConfig) security() []string {
	if c.privileged || slices.ContainsFunc(c.securityOpt, ofPrivileges) {
		return c.securityOpt
	}
	return append([]string{"no-new-privileges"}, c.securityOpt...)
}

// withoutNeeded leaves out what drover-init needs: docker refuses to be told both.
func withoutNeeded(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		_, needed := neededCaps[strings.ToUpper(options.CapName(n))]
		return needed
	})
}

// workDir is the job's, else the image's, else the root, as docker chooses it.
func workDir(c taskConfig, img images.Image) string {
	for _, dir := range []string{c.workDir, img.WorkDir} {
		if dir != "" {
			return dir
		}
	}
	return "/"
}

// containerName is Nomad's: <task>-<alloc>.
func containerName(spec *driver.Spec) string {
	clean := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}
	name := strings.Map(clean, spec.TaskName+"-"+spec.AllocID)
	if strings.ContainsRune("_.-", rune(name[0])) { // docker wants a letter or a digit first
		name = "t" + name
	}
	return name
}

// labels of the task, those that the node adds, and ours.
func (d *Driver) labels(spec *driver.Spec, c taskConfig) map[string]string {
	const prefix = "com.hashicorp.nomad."
	out := maps.Clone(c.labels)
	maps.Copy(out, map[string]string{
		labelOwner: d.cfg.Owner, labelID: spec.ID, prefix + "alloc_id": spec.AllocID, prefix + "task_name": spec.TaskName,
		prefix + "job_name": spec.Job, prefix + "task_group_name": spec.Group,
	})
	for name, variable := range map[string]string{"job_id": "NOMAD_JOB_ID", "namespace": "NOMAD_NAMESPACE"} {
		for _, pattern := range d.cfg.Labels {
			if ok, err := path.Match(pattern, name); ok && err == nil && spec.Env[variable] != "" {
				out[prefix+name] = spec.Env[variable]
			}
		}
	}
	return out
}

// The kernel's bounds of cpu shares (v1; docker translates them for v2), and its usual period in microseconds.
const (
	minShares, maxShares = 2, 262144
	defaultPeriod        = 100_000
)

// resources limits the container; what executions get on top is inside of that.
func (d *Driver) resources(spec *driver.Spec, c taskConfig) (container.Resources, error) {
	r := container.Resources{CPUShares: min(max(spec.CPUMHz, minShares), maxShares), Devices: c.devices}
	// -1 stays as it is: docker takes it for no limit, and check has refused it where the node has one.
	if c.pids == 0 {
		c.pids = d.cfg.Pids
	}
	if c.pids != 0 {
		r.PidsLimit = new(c.pids)
	}
	hard, soft := spec.MemoryMB, int64(0)
	switch {
	case c.memoryHard > 0:
		hard, soft = c.memoryHard, spec.MemoryMB
	case spec.MemoryMaxMB < 0: // Nomad: no hard limit
		hard, soft = 0, spec.MemoryMB
	case spec.MemoryMaxMB > spec.MemoryMB:
		hard, soft = spec.MemoryMaxMB, spec.MemoryMB
	}
	// Memory and swap together have memory's limit, so the task gets no swap. Docker counts in bytes.
	r.Memory, r.MemorySwap, r.MemoryReservation = hard<<20, hard<<20, soft<<20
	if c.memorySoft > 0 && (hard == 0 || c.memorySoft < hard<<20) {
		r.MemoryReservation = c.memorySoft
	}
	if c.cpuHard && spec.CPUMHz > 0 {
		if d.cfg.CoreMHz <= 0 {
			return r, drover.Errorf(drover.Unavailable, "cpu_hard_limit: the speed of this machine's cores is not known")
		}
		r.CPUPeriod = max(c.cpuPeriod, 0)
		if r.CPUPeriod == 0 {
			r.CPUPeriod = defaultPeriod
		}
		// The kernel refuses quotas below a millisecond.
		r.CPUQuota = max(r.CPUPeriod*spec.CPUMHz/int64(d.cfg.CoreMHz), 1000)
	}
	var cores []string
	for _, n := range spec.Cores {
		cores = append(cores, strconv.Itoa(int(n)))
	}
	if r.CpusetCpus = strings.Join(cores, ","); r.CpusetCpus == "" { // cores that the task has alone count, as on Nomad
		r.CpusetCpus = c.cpus
	}
	var err error
	r.Ulimits, err = ulimits(c.ulimit)
	return r, err
}

// initEnv is for drover-init: Go's runtime raises its soft limit of open files, and it could not know the task's.
func initEnv(c taskConfig) []string {
	if limits, err := ulimits(c.ulimit); err == nil {
		for _, l := range limits {
			if l.Name == "nofile" && l.Soft >= 0 {
				return []string{wire.OpenFilesVariable + "=" + strconv.FormatInt(l.Soft, 10)}
			}
		}
	}
	return nil
}

// ulimits reads name = "soft:hard" or "both".
func ulimits(in map[string]string) ([]*container.Ulimit, error) {
	var out []*container.Ulimit
	for _, name := range slices.Sorted(maps.Keys(in)) {
		softText, hardText, both := strings.Cut(in[name], ":")
		if !both {
			hardText = softText
		}
		soft, err1 := strconv.ParseInt(softText, 10, 64)
		hard, err2 := strconv.ParseInt(hardText, 10, 64)
		if err1 != nil || err2 != nil || soft > hard && hard >= 0 {
			return nil, drover.Errorf(drover.Invalid, "ulimit: %s = %q is not soft:hard", name, in[name])
		}
		out = append(out, &container.Ulimit{Name: name, Soft: soft, Hard: hard})
	}
	return out, nil
}

// labelsOf are those of the ports that a task publishes, in one of the two forms.
func labelsOf(c taskConfig) []string {
	list := slices.Clone(c.ports)
	for _, label := range slices.Sorted(maps.Keys(c.portMap)) {
		if !slices.Contains(list, label) {
			list = append(list, label)
		}
	}
	return list
}

// ports publishes allocated ports by their labels, for tcp and udp, as Nomad does.
func ports(spec *driver.Spec, c taskConfig) (network.PortSet, network.PortMap, error) {
	exposed, bindings := network.PortSet{}, network.PortMap{}
	for _, label := range labelsOf(c) {
		i := slices.IndexFunc(spec.Ports, func(p group.PortMapping) bool { return p.Label == label })
		if i < 0 {
			return nil, nil, drover.Errorf(drover.Invalid, "ports: the group's network has no port %q", label)
		}
		p := spec.Ports[i]
		to := cmp.Or(c.portMap[label], max(p.To, 0), p.Value)
		var ip netip.Addr
		if p.HostIP != "" {
			var err error
			if ip, err = parseAddr(p.HostIP); err != nil {
				return nil, nil, err
			}
		}
		for _, proto := range []network.IPProtocol{network.TCP, network.UDP} {
			port, ok := network.PortFrom(uint16(to), proto) // checked by ok
			if !ok || to > 65535 {
				return nil, nil, drover.Errorf(drover.Invalid, "ports: %q maps to %d", label, to)
			}
			exposed[port] = struct{}{}
			bindings[port] = append(bindings[port], network.PortBinding{HostIP: ip, HostPort: strconv.Itoa(p.Value)})
		}
	}
	return exposed, bindings, nil
}

// parseAddr names the text in its error, without the parser's own wording; the caller adds the key.
func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("%q is not an address", s) // shown to people
	}
	return a, nil
}

// addrs leaves out what is no address.
func addrs(list []string) (out []netip.Addr) {
	for _, s := range list {
		if a, err := parseAddr(s); err == nil { // check has complained
			out = append(out, a)
		}
	}
	return out
}
