package config

// HostNetwork is a name for some of the machine's addresses, by which ports of jobs ask for them.
type HostNetwork struct {
	Name          string `hcl:"name,label"`
	CIDR          string `hcl:"cidr,optional"`           // addresses of the network; CIDR; default all
	Interface     string `hcl:"interface,optional"`      // addresses of the interface of that name; default all
	ReservedPorts string `hcl:"reserved_ports,optional"` // ports that are never given out on the node: "22,80,8500-8600"
}
