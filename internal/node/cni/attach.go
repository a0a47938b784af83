package cni

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

const (
	// Inside is the name that plugins are asked to give to the interface in the namespace.
	Inside          = "eth0"
	capabilityPorts = "portMappings"
)

// How long the plugins of one network may take together. Whoever waits for the end of an allocation waits for the latter.
const (
	attachPatience = 30 * time.Second
	detachPatience = 15 * time.Second
)

// Attachment is a namespace's place in a network. It is written down before a plugin runs, so that whatever plugins began can be
// undone, also when the network's file has changed meanwhile.
type Attachment struct {
	Network string                `json:"network"`
	Config  json.RawMessage       `json:"config"` // of all plugins, as it was at the beginning
	ID      string                `json:"id"`     // the allocation's: the container's for plugins
	Args    [][2]string           `json:"args,omitempty"`
	Ports   []network.PortMapping `json:"ports,omitempty"`
	// Status is what the plugins gave; nil until all of them succeeded.
	Status *network.Status `json:"status,omitempty"`
}

// Plan says how an allocation's namespace will be attached to the network. args are those of the job. Errors: Unavailable, if the machine
// has no such network, and why; Invalid for arguments that plugins cannot be given.
func (n *Networks) Plan(name string, alloc *drover.Allocation, args map[string]string, ports []network.PortMapping) (*Attachment, error) {
	list, err := n.find(name)
	if err != nil {
		return nil, err
	}
	a := &Attachment{Network: name, Config: compacted(list.Bytes), ID: alloc.ID, Ports: ports}
	if a.Args, err = arguments(alloc, args); err != nil {
		return nil, err
	}
	return a, nil
}

// arguments are those that plugins get: Nomad's of the allocation, then the job's. One of Nomad's with a semicolon, which ends an
// argument, is left out, as Nomad does.
func arguments(alloc *drover.Allocation, args map[string]string) (out [][2]string, err error) {
	region := ""
	if alloc.Job != nil {
		region = alloc.Job.Region
	}
	if _, says := args["IgnoreUnknown"]; !says {
		out = append(out, [2]string{"IgnoreUnknown", "true"})
	}
	for _, kv := range [][2]string{
		{"NOMAD_REGION", region},
		{"NOMAD_NAMESPACE", alloc.Namespace},
		{"NOMAD_JOB_ID", alloc.JobID},
		{"NOMAD_GROUP_NAME", alloc.TaskGroup},
		{"NOMAD_ALLOC_ID", alloc.ID},
	} {
		if !strings.ContainsAny(kv[1], ";\n\x00") {
			out = append(out, kv)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(args)) {
		if err := network.ValidCNIArg(key, args[key]); err != nil {
			return nil, drover.Errorf(drover.Invalid, "cni args: %w", err)
		}
		out = append(out, [2]string{key, args[key]})
	}
	return out, nil
}

// Unmapped reports that the network has no plugin that leads the machine's ports to the namespace.
func (a *Attachment) Unmapped() bool {
	list, err := parse(a.Config)
	return err == nil && len(a.Ports) > 0 && !mapsPorts(list)
}

// portMapping is a port in the words of CNI's capability.
type portMapping struct {
	HostPort      int    `json:"hostPort"`
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP,omitempty"`
}

// runtime is what plugins are told beside their configuration.
func (a *Attachment) runtime(namespace string) *libcni.RuntimeConf {
	var ports []portMapping
	for _, p := range a.Ports {
		inside := p.To
		if inside <= 0 {
			inside = p.Value
		}
		for _, protocol := range []string{"tcp", "udp"} {
			ports = append(ports, portMapping{HostPort: p.Value, ContainerPort: inside, Protocol: protocol, HostIP: p.HostIP})
		}
	}
	rt := &libcni.RuntimeConf{ContainerID: a.ID, NetNS: namespace, IfName: Inside, Args: a.Args}
	if len(ports) > 0 {
		rt.CapabilityArgs = map[string]any{capabilityPorts: ports}
	}
	return rt
}

// Attach runs the plugins for the namespace, and notes what they gave. After an error Detach undoes what they began. Errors:
// Unavailable, in the plugin's words.
func (n *Networks) Attach(ctx context.Context, a *Attachment, namespace string) error {
	list, err := parse(a.Config)
	if err != nil {
		return drover.Errorf(drover.Unavailable, "CNI network %q: %w", a.Network, err)
	}
	ctx, cancel := n.cfg.Clock.WithTimeout(ctx, attachPatience)
	defer cancel()
	result, err := n.plugins.AddNetworkList(ctx, list, a.runtime(namespace))
	if err == nil {
		a.Status, err = status(result)
	}
	if err != nil {
		return drover.Errorf(drover.Unavailable, "CNI network %q: %w", a.Network, bare(err))
	}
	return nil
}

// Detach undoes Attach, also one that failed, or that nobody saw the end of. namespace is "" if it is gone. Idempotent. Errors:
// Unavailable, in the plugin's words.
func (n *Networks) Detach(ctx context.Context, a *Attachment, namespace string) error {
	list, err := parse(a.Config)
	if err != nil {
		return drover.Errorf(drover.Unavailable, "CNI network %q: %w", a.Network, err)
	}
	ctx, cancel := n.cfg.Clock.WithTimeout(ctx, detachPatience)
	defer cancel()
	if err := n.plugins.DelNetworkList(ctx, list, a.runtime(namespace)); err != nil {
		return drover.Errorf(drover.Unavailable, "CNI network %q: %w", a.Network, bare(err))
	}
	a.Status = nil
	return nil
}

// bare is an error of libcni or a plugin as one line of text.
func bare(err error) error { return errors.New(plain(err.Error())) }

// Close removes the folder of results if nothing is attached any more.
func (n *Networks) Close() error {
	_ = os.Remove(filepath.Join(n.cfg.CacheDir, "results"))
	_ = os.Remove(n.cfg.CacheDir)
	return nil
}
