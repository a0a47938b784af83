package qemu

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/network"
)

// Sockets of a machine, in the folder for secrets, which nobody else sees.
const (
	monitorSocket = "qemu-monitor.sock"
	agentSocket   = "qemu-guest-agent.sock"
)

// maxPids bounds qemu's threads.
const maxPids = 4096

// overheadMB is what qemu needs beside the machine's memory. tcg keeps translated code, a quarter of that memory or 1 GB.
func overheadMB(c *taskConfig, memory int64) int64 {
	const itself = 128
	if c.accel == "tcg" {
		return itself + min(memory/4, 1024)
	}
	return itself
}

// Start implements driver.Driver.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	task, err := d.task(ctx, &spec)
	if err != nil {
		return nil, &driver.StartError{Recoverable: drover.CodeOf(err) == drover.Unavailable, Err: err}
	}
	h, err := d.cfg.Sandbox.StartTask(ctx, spec, task)
	if err != nil {
		return nil, err
	}
	return d.handle(h), nil
}

// task is what the sandbox driver is asked for. It adds to the specification what qemu needs.
func (d *Driver) task(ctx context.Context, spec *driver.Spec) (t sandbox.Task, err error) {
	c, err := d.parse(spec.Config)
	if err != nil {
		return t, err
	}
	if spec.Pool {
		return t, drover.Errorf(drover.Invalid, "the driver qemu has no warm runners")
	}
	p, err := d.find(ctx)
	if err != nil {
		return t, err
	}
	at, outside, err := d.imagePath(c.image, supervised.InsidePaths(spec.Dirs))
	if err != nil {
		return t, err
	}
	if outside != "" { // its folder is there for images that it is based on
		spec.Mounts = append(slices.Clone(spec.Mounts), driver.Mount{Source: filepath.Dir(outside), Target: filepath.Dir(at), ReadOnly: true},
			driver.Mount{Source: outside, Target: at})
	}
	t = sandbox.Task{Driver: Name, Trees: p.trees, Pids: maxPids, AllowHostNetwork: d.cfg.AllowHostNetwork}
	if c.graceful {
		t.Note = filepath.Join(spec.Dirs.Secrets, monitorSocket)
	}
	if c.accel == "kvm" {
		spec.Devices.Nodes = append(slices.Clone(spec.Devices.Nodes), driver.DeviceNode{Source: kvm, Target: kvm, Shared: true})
	}
	if t.Argv, err = command(p.inside, at, &c, spec, d.cfg.Sandbox.SharesMachine(spec, t)); err != nil {
		return t, err
	}
	over := overheadMB(&c, spec.MemoryMB)
	spec.MemoryMB += over
	if spec.MemoryMaxMB > 0 {
		spec.MemoryMaxMB += over
	}
	return t, nil
}

// command is qemu's command line. What the job passes comes last but for ports, as on Nomad.
func command(program, image string, c *taskConfig, spec *driver.Spec, onMachine bool) ([]string, error) {
	argv := []string{
		program, "-machine", "type=" + c.machine + ",accel=" + c.accel, "-name", quoted(filepath.Base(image)),
		"-m", fmt.Sprintf("%dM", spec.MemoryMB),
		"-drive", "file=" + quoted(image) + ",if=" + c.drive, "-nographic",
	}
	if c.accel == "kvm" {
		argv = append(argv, "-cpu", "host")
	}
	if n := len(spec.Cores); n > 0 {
		argv = append(argv, "-smp", fmt.Sprint(n))
	}
	if c.graceful {
		argv = append(argv, "-monitor", "unix:"+supervised.SecretsPath+"/"+monitorSocket+",server,nowait")
	}
	if c.guestAgent {
		argv = append(argv, "-chardev", "socket,path="+supervised.SecretsPath+"/"+agentSocket+",server=on,wait=off,id=qga0", "-device",
			"virtio-serial", "-device", "virtserialport,chardev=qga0,name=org.qemu.guest_agent.0")
	}
	argv = append(argv, c.args...)
	if len(c.ports) == 0 {
		return argv, nil
	}
	net := "user,id=user.0"
	for _, label := range slices.Sorted(maps.Keys(c.ports)) {
		i := slices.IndexFunc(spec.Ports, func(p network.PortMapping) bool { return p.Label == label })
		if i < 0 {
			return nil, drover.Errorf(drover.Invalid, "port_map: the group has no port %q", label)
		}
		port, address := spec.Ports[i], ""
		listen := port.Value
		switch {
		case onMachine:
			if ip, err := netip.ParseAddr(port.HostIP); err == nil && ip.Is4() { // qemu's user network has no others
				address = port.HostIP
			}
		case port.To > 0: // where the bridge leads
			listen = port.To
		}
		for _, kind := range []string{"udp", "tcp"} {
			net += fmt.Sprintf(",hostfwd=%s:%s:%d-:%d", kind, address, listen, c.ports[label])
		}
	}
	return append(argv, "-netdev", net, "-device", "virtio-net,netdev=user.0"), nil
}

// quoted is a value in a list of qemu's, in which a comma would begin the next option.
func quoted(value string) string { return strings.ReplaceAll(value, ",", ",,") }
