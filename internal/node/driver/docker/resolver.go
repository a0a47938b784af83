package docker

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/network"
)

const containerMode = "container:" // of another container's network

// group settles the task's network by what its group says: its own configuration has the last word. By path means that any namespace
// can be joined, not only that of a container.
func (c *taskConfig) group(spec *driver.Spec, byPath bool) {
	if len(spec.Networks) > 0 {
		n := spec.Networks[0]
		if d := n.DNS; d != nil && len(c.dns)+len(c.dnsSearch)+len(c.dnsOptions) == 0 {
			c.dns, c.dnsSearch, c.dnsOptions = d.Servers, d.Searches, d.Options
		}
		if c.hostname == "" {
			c.hostname = n.Hostname
		}
		if c.network == "" && n.Mode == "none" {
			c.network = "none"
		}
	}
	if c.network != "" || spec.NetNS == nil || spec.NetNS.Container == "" && !byPath {
		return
	}
	c.network, c.joined = containerMode+spec.NetNS.Container, true
	if byPath {
		c.network = namespaceMode + spec.NetNS.Path
	}
	c.ports, c.portMap = nil, nil // they lead to the group's namespace already
}

// files of a container that shares a network, which docker takes none of the options for: its hosts and its resolver's
// configuration.
func (c *taskConfig) files(spec *driver.Spec) (list []mount.Mount, err error) {
	if !c.joined && !c.wired {
		return nil, nil
	}
	hosts, resolver := "", ""
	if c.joined && len(c.extraHosts) > 0 {
		if hosts, err = supervised.WriteFile(spec, "hosts", c.hosts()); err != nil {
			return nil, err
		}
	}
	dns := network.DNSConfig{Servers: c.dns, Searches: c.dnsSearch, Options: c.dnsOptions}
	if resolver, err = supervised.WriteResolver(spec, dns); err != nil {
		return nil, err
	}
	if resolver == "" && c.wired { // the machine's, as far as the bridge leads to them
		if resolver, err = filepath.EvalSymlinks(egress.ResolverFile()); err != nil {
			resolver = "" // it has none
		}
	}
	for target, source := range map[string]string{"/etc/hosts": hosts, "/etc/resolv.conf": resolver} {
		if source != "" {
			list = append(list, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: source == resolver && c.wired})
		}
	}
	return list, nil
}

// hosts is the file of that name with the extra hosts in it.
func (c *taskConfig) hosts() string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	for _, h := range c.extraHosts {
		name, address, _ := strings.Cut(h, ":")
		fmt.Fprintf(&b, "%s\t%s\n", strings.Trim(address, "[]"), name)
	}
	return b.String()
}
