package fingerprint

import (
	"bufio"
	"bytes"
	"cmp"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/gitfetch"
)

// Host is what was found.
type Host struct {
	Attributes map[string]string
	Hostname   string
	Cores      int
	CPUMHz     int64 // of all cores together
	MemoryMB   int64
	DiskMB     int64 // free in the data folder's file system
	// IP is the first address that is not loopback, of IPv4 where there is one, or that of On, and Interface the name of its device.
	IP        string
	Interface string
}

// Probe looks at the machine. dataDir is where allocations will be. What cannot be found out is left zero.
func Probe(dataDir string) Host {
	h := Host{Attributes: map[string]string{}, Cores: runtime.NumCPU()}
	h.cpu()
	h.memory()
	h.disk(dataDir)
	h.system()
	h.network()
	return h
}

// set leaves out empty values: a constraint on an attribute that is missing does not match.
func (h *Host) set(key, value string) {
	if value != "" {
		h.Attributes[key] = value
	}
}

// defaultMHz is assumed where the machine does not say (most arm64).
const defaultMHz = 2000

// CoreMHz returns a core's speed, 2000 where the machine does not say.
func CoreMHz() int64 {
	mhz, _ := core()
	return mhz
}

// core returns the speed of the fastest core and the model's name, "" if there is none. The kernel's maximum counts
// where it is known, since "cpu MHz" is only the present speed.
func core() (mhz int64, model string) {
	fastest := 0.0
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "cpu MHz":
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				fastest = max(fastest, f)
			}
		case "model name":
			model = value
		}
	}
	if data, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); err == nil {
		if khz, err := strconv.ParseFloat(strings.TrimSpace(string(data)), 64); err == nil {
			fastest = max(fastest, khz/1000)
		}
	}
	if fastest < 1 {
		fastest = defaultMHz
	}
	return int64(fastest), model
}

// cpu sets Nomad's attributes of the processor. Compute is in MHz over all cores, the unit of a task's resources.
func (h *Host) cpu() {
	mhz, model := core()
	h.set("cpu.modelname", model)
	h.CPUMHz = mhz * int64(h.Cores)
	total := strconv.FormatInt(h.CPUMHz, 10)
	h.set("cpu.arch", runtime.GOARCH)
	h.set("cpu.numcores", strconv.Itoa(h.Cores))
	h.set("cpu.frequency", strconv.FormatInt(mhz, 10))
	h.set("cpu.totalcompute", total)
	h.set("cpu.usablecompute", total)
}

// memory takes the kernel's total, which is somewhat less than what is built in.
func (h *Host) memory() {
	data, _ := os.ReadFile("/proc/meminfo")
	kb := meminfo(data)["MemTotal"]
	h.MemoryMB = kb / 1024
	h.set("memory.totalbytes", strconv.FormatInt(kb*1024, 10))
}

// meminfo reads the lines of /proc/meminfo, in kB as the kernel has them.
func meminfo(data []byte) map[string]int64 {
	out := map[string]int64{}
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		key, rest, _ := strings.Cut(s.Text(), ":")
		if f := strings.Fields(rest); len(f) > 0 {
			out[key], _ = strconv.ParseInt(f[0], 10, 64)
		}
	}
	return out
}

// disk offers what is free now to whoever is not root. These attributes are unique: they do not count for the node's
// class.
func (h *Host) disk(dir string) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return
	}
	free, total := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
	h.DiskMB = free >> 20
	h.set("unique.storage.bytesfree", strconv.FormatInt(free, 10))
	h.set("unique.storage.bytestotal", strconv.FormatInt(total, 10))
	h.set("unique.storage.volume", dir)
}

// system sets the names of machine, kernel and distribution, and which version of control groups is mounted.
func (h *Host) system() {
	h.Hostname, _ = os.Hostname()
	h.set("unique.hostname", h.Hostname)
	h.set("kernel.name", runtime.GOOS)
	h.set("arch", runtime.GOARCH)
	h.set("os.name", runtime.GOOS)
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.set("kernel.version", unix.ByteSliceToString(u.Release[:]))
		h.set("kernel.arch", unix.ByteSliceToString(u.Machine[:]))
	}
	h.set("kernel.landlock", "unavailable")
	if v := gitfetch.Landlock(); v > 0 {
		h.set("kernel.landlock", "v"+strconv.Itoa(v))
	}
	release := osRelease()
	h.set("os.name", release["ID"])
	h.set("os.version", release["VERSION_ID"])
	switch {
	case exists("/sys/fs/cgroup/cgroup.controllers"):
		h.set("unique.cgroup.version", "v2")
		h.set("os.cgroups.version", "2")
	case exists("/sys/fs/cgroup/memory"):
		h.set("unique.cgroup.version", "v1")
		h.set("os.cgroups.version", "1")
	}
}

// osRelease reads /etc/os-release without quotes; empty where there is none. See os-release(5).
func osRelease() map[string]string {
	data, _ := os.ReadFile("/etc/os-release")
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out[k] = strings.Trim(v, `"'`)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// network finds the machine's address.
func (h *Host) network() { _ = h.On("", "") } // without a name there is no error

// IPv6 is the family of On that is preferred to IPv4.
const IPv6 = "ipv6"

// On makes the first address of an interface the machine's, of a loopback's any; "" is the first interface that has one, and a
// machine without one gets 127.0.0.1. Among several it is one of the family, ipv4 or ipv6; "" is ipv4. Errors: Invalid.
func (h *Host) On(name, family string) error {
	if name == "" {
		interfaces, _ := net.Interfaces()
		h.IP, h.Interface = first(interfaces, family)
		h.set("unique.network.ip-address", h.IP)
		return nil
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return drover.Errorf(drover.Invalid, "there is no interface %q", name)
	}
	ip := addressesOf(*i).of(family)
	if ip == "" && i.Flags&net.FlagLoopback != 0 {
		ip = "127.0.0.1"
	}
	if ip == "" || i.Flags&net.FlagUp == 0 {
		return drover.Errorf(drover.Invalid, "interface %q is not up, or has no address", name)
	}
	h.IP, h.Interface = ip, name
	h.set("unique.network.ip-address", h.IP)
	return nil
}

// Address is the family of the machine's address, and the network that it is alone in.
func (h *Host) Address() (family, cidr string) {
	if ip := net.ParseIP(h.IP); ip != nil && ip.To4() == nil {
		return IPv6, h.IP + "/128"
	}
	return "ipv4", h.IP + "/32"
}

// first is the address of the first interface that has one of the family, else of the first that has any.
func first(interfaces []net.Interface, family string) (ip, device string) {
	ip, device = "127.0.0.1", "lo"
	other := false
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		switch found := addressesOf(i); {
		case found.preferred(family) != "":
			return found.preferred(family), i.Name
		case !other && found.of(family) != "":
			ip, device, other = found.of(family), i.Name, true
		}
	}
	return ip, device
}

// found are an interface's first addresses that others can reach, "" where it has none.
type found struct{ four, six string }

func addressesOf(i net.Interface) (f found) {
	addresses, _ := i.Addrs()
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || !n.IP.IsGlobalUnicast():
		case n.IP.To4() != nil:
			f.four = cmp.Or(f.four, n.IP.String())
		default:
			f.six = cmp.Or(f.six, n.IP.String())
		}
	}
	return f
}

// preferred is the address of the family.
func (f found) preferred(family string) string {
	if family == IPv6 {
		return f.six
	}
	return f.four
}

// of is the address of the family, else that of the other one.
func (f found) of(family string) string { return cmp.Or(f.preferred(family), f.four, f.six) }
