package config

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"

	"github.com/drover-project/drover"
)

// Fleet is about machines that are bought and returned.
type Fleet struct {
	Owner     string           `hcl:"owner,optional"`  // tag of our machines; default made once and kept with the state
	Server    string           `hcl:"server,optional"` // host:port that machines dial; default advertise.rpc, else where rpc listens
	Providers []*FleetProvider `hcl:"provider,block"`
	Pools     []*FleetPool     `hcl:"pool,block"`
}

// FleetProvider is a cloud. Which keys count depends on its type.
type FleetProvider struct {
	Name   string `hcl:"name,label"`
	Type   string `hcl:"type,optional"`   // loopback, docker or ec2; default the name
	Region string `hcl:"region,optional"` // of ec2

	Dir  string     `hcl:"dir,optional"`      // of loopback: where its machines live; default <data_dir>/fleet/<name>
	Max  int        `hcl:"max,optional"`      // of loopback and docker: machines at most; default no limit
	Room *FleetSize `hcl:"room,block"`        // of loopback and docker: what all machines together may take
	Host string     `hcl:"endpoint,optional"` // of docker: of dockerd; of ec2: of the API, for tests and private clouds

	Network        string            `hcl:"network,optional"`             // of docker
	Subnets        map[string]string `hcl:"subnets,optional"`             // of ec2: by zone
	SecurityGroups []string          `hcl:"security_groups,optional"`     // of ec2
	Profile        string            `hcl:"instance_profile,optional"`    // of ec2
	KeyName        string            `hcl:"key_name,optional"`            // of ec2
	CredentialFile string            `hcl:"credentials,optional"`         // of ec2: path; default the environment, then the usual file, then the machine's role
	AccessKey      string            `hcl:"access_key,optional" json:"-"` // of ec2
	SecretKey      string            `hcl:"secret_key,optional" json:"-"` // of ec2
	RootDevice     string            `hcl:"root_device,optional"`         // of ec2: the image's, such as /dev/xvda; with it the disk is as large as the type's
	PublicAddress  *bool             `hcl:"public_address,optional"`      // of ec2: reach machines at their public addresses
	PerSecond      float64           `hcl:"calls_per_second,optional"`    // of ec2: bound of our own calls
	PriceEvery     string            `hcl:"price_interval,optional"`      // of ec2: how often spot prices are asked for; default 15m
	StopTimeout    string            `hcl:"stop_timeout,optional"`        // of loopback: how long agents have to end
	Env            map[string]string `hcl:"env,optional" json:"-"`        // of loopback: of the agents
	Privileged     *bool             `hcl:"privileged,optional"`          // of docker: agents that run sandboxes need it
	AgentImage     string            `hcl:"agent_image,optional"`         // of docker; default made from this program
}

// Kind returns the provider's type.
func (p *FleetProvider) Kind() string {
	if p.Type == "" {
		return p.Name
	}
	return p.Type
}

// Setting names what these settings put into machines, beside what pools do; "" = nothing. Machines that were made with
// another one are replaced.
func (p *FleetProvider) Setting() string {
	var made []any
	switch p.Kind() {
	case "docker":
		made = []any{p.AgentImage, p.Network, True(p.Privileged)}
	case "ec2":
		made = []any{p.Subnets, p.SecurityGroups, p.Profile, p.KeyName, p.RootDevice, True(p.PublicAddress)}
	default: // agents of this machine: its environment may hold secrets, and is no part of a machine
		return ""
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%q", made) // a hash takes everything; maps are printed in the order of their keys
	return fmt.Sprintf("%08x", h.Sum32())
}

// FleetSize is an amount of resources.
type FleetSize struct {
	CPU      int64 `hcl:"cpu,optional"`    // MHz
	MemoryMB int64 `hcl:"memory,optional"` // MB
	DiskMB   int64 `hcl:"disk,optional"`   // MB
}

func (s *FleetSize) capacity() drover.Capacity {
	if s == nil {
		return drover.Capacity{}
	}
	return drover.Capacity{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}
}

// Capacity returns the size; nothing if it is not set.
func (s *FleetSize) Capacity() drover.Capacity { return s.capacity() }

// FleetPool is a drover.FleetPolicy as people write it: what the fields mean is said there.
type FleetPool struct {
	Name       string            `hcl:"name,label"`
	Provider   string            `hcl:"provider"`
	Region     string            `hcl:"region,optional"`
	Zones      []string          `hcl:"zones,optional"` // default one, named "default"
	NodePool   string            `hcl:"node_pool,optional"`
	Datacenter string            `hcl:"datacenter,optional"` // default the server's
	Spot       string            `hcl:"spot,optional"`
	Image      string            `hcl:"image,optional"`
	UserData   string            `hcl:"user_data,optional"`
	Tags       map[string]string `hcl:"tags,optional"`

	Min      int     `hcl:"min,optional"`
	Max      int     `hcl:"max,optional"`
	MaxPrice float64 `hcl:"max_price,optional"`
	WaitCost float64 `hcl:"wait_cost,optional"`

	Idle        string  `hcl:"idle,optional"`
	Expire      string  `hcl:"expire,optional"`
	BootTimeout string  `hcl:"boot_timeout,optional"`
	LostTimeout string  `hcl:"lost_timeout,optional"`
	AdoptGrace  string  `hcl:"adopt_grace,optional"`
	OrphanGrace string  `hcl:"orphan_grace,optional"`
	PowerOff    string  `hcl:"terminate_at_dead,optional"`
	Disruption  float64 `hcl:"disruption,optional"`
	Consolidate *bool   `hcl:"consolidate,optional"`
	SpotSpread  int     `hcl:"spot_spread,optional"`
	BootProbe   string  `hcl:"boot_probe,optional"`
	RunProbe    string  `hcl:"run_probe,optional"`

	Limits   *FleetSize       `hcl:"limits,block"`
	Budget   *FleetBudget     `hcl:"budget,block"`
	SSH      *FleetSSH        `hcl:"ssh,block"`
	Types    []*FleetType     `hcl:"type,block"`
	Schedule []*FleetSchedule `hcl:"schedule,block"`
	Standby  []*FleetStandby  `hcl:"standby,block"`
}

// FleetBudget bounds the cost.
type FleetBudget struct {
	PerHour          float64 `hcl:"per_hour,optional"`
	PerDay           float64 `hcl:"per_day,optional"`
	AtLimit          string  `hcl:"at_limit,optional"` // queue (default), critical or alert
	CriticalPriority int     `hcl:"critical_priority,optional"`
}

// FleetSSH is how machines without user data are reached.
type FleetSSH struct {
	User       string   `hcl:"user,optional"` // default root; others need sudo without a password
	Port       int      `hcl:"port,optional"`
	Key        string   `hcl:"key"`
	HostKeys   []string `hcl:"host_keys,optional"`   // host keys or fingerprints; default: what the machine writes to its console
	SecretFile string   `hcl:"secret_file,optional"` // where the user data wrote ${secret}, instead
	Config     string   `hcl:"config,optional"`      // the agent's configuration; default ${config}
}

// FleetType is an instance type that a pool may buy.
type FleetType struct {
	Name        string            `hcl:"name,label"`
	CPU         int64             `hcl:"cpu"`           // MHz
	MemoryMB    int64             `hcl:"memory"`        // MB
	DiskMB      int64             `hcl:"disk,optional"` // MB
	Price       float64           `hcl:"price"`         // per hour
	SpotPrice   float64           `hcl:"spot_price,optional"`
	Devices     map[string]int    `hcl:"devices,optional"`
	Attributes  map[string]string `hcl:"attributes,optional"`
	Family      string            `hcl:"family,optional"`
	QuotaGroup  string            `hcl:"quota_group,optional"`
	QuotaUnits  int64             `hcl:"quota_units,optional"`
	Granularity string            `hcl:"billed_by,optional"` // charged in multiples of it; default 1s
	Minimum     string            `hcl:"billed_at_least,optional"`
	Interrupted float64           `hcl:"interruptions,optional"` // expected per hour as spot
}

// FleetSchedule keeps a minimum at certain times.
type FleetSchedule struct {
	Cron     string `hcl:"cron"`
	Zone     string `hcl:"zone,optional"`
	Duration string `hcl:"duration"`
	Min      int    `hcl:"min"`
}

// FleetStandby is room that is kept free.
type FleetStandby struct {
	CPU      int64 `hcl:"cpu,optional"`
	MemoryMB int64 `hcl:"memory,optional"`
	DiskMB   int64 `hcl:"disk,optional"`
	Count    int   `hcl:"count"`
}

// Policy returns the pool as the fleet knows it, canonicalized and checked. Errors: Invalid, with all that is wrong.
func (p *FleetPool) Policy() (*drover.FleetPolicy, error) {
	d := &durations{}
	out := &drover.FleetPolicy{
		Name: p.Name, NodePool: p.NodePool, Datacenter: p.Datacenter, Provider: p.Provider, Region: p.Region, Zones: p.Zones, Spot: p.Spot, Image: p.Image,
		UserData: p.UserData, Tags: p.Tags, Min: p.Min, Max: p.Max, MaxPrice: p.MaxPrice, WaitCost: p.WaitCost,
		Limits: p.Limits.capacity(), Disruption: p.Disruption, Consolidate: True(p.Consolidate), SpotSpread: p.SpotSpread,
		BootProbe: p.BootProbe, RunProbe: p.RunProbe,
		Idle: d.read("idle", p.Idle), Expire: d.read("expire", p.Expire), BootTimeout: d.read("boot_timeout", p.BootTimeout),
		LostTimeout: d.read("lost_timeout", p.LostTimeout), AdoptGrace: d.read("adopt_grace", p.AdoptGrace),
		OrphanGrace: d.read("orphan_grace", p.OrphanGrace), TerminateAtDead: d.read("terminate_at_dead", p.PowerOff),
	}
	if len(out.Zones) == 0 {
		out.Zones = []string{"default"}
	}
	if b := p.Budget; b != nil {
		out.Budget = drover.FleetBudget(*b)
	}
	if s := p.SSH; s != nil {
		out.SSH = &drover.FleetSSH{User: s.User, Port: s.Port, Key: s.Key, HostKeys: s.HostKeys, SecretFile: s.SecretFile, Config: s.Config}
	}
	for _, t := range p.Types {
		out.Types = append(out.Types, t.instanceType(d))
	}
	for _, s := range p.Schedule {
		out.Schedule = append(out.Schedule, drover.FleetSchedule{Cron: s.Cron, Zone: s.Zone, Duration: d.read("schedule.duration", s.Duration), Min: s.Min})
	}
	for _, s := range p.Standby {
		out.Standby = append(out.Standby, drover.FleetStandby{Each: drover.Capacity{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}, Count: s.Count})
	}
	if len(d.wrong) > 0 {
		return nil, drover.Errorf(drover.Invalid, "fleet pool %q: %s", p.Name, strings.Join(d.wrong, "; "))
	}
	out.Canonicalize()
	return out, out.Validate()
}

func (t *FleetType) instanceType(d *durations) drover.InstanceType {
	return drover.InstanceType{
		Name: t.Name, Capacity: drover.Capacity{CPU: t.CPU, MemoryMB: t.MemoryMB, DiskMB: t.DiskMB}, Devices: t.Devices,
		Attributes: t.Attributes, Price: t.Price, SpotPrice: t.SpotPrice, Family: t.Family, QuotaGroup: t.QuotaGroup,
		QuotaUnits: t.QuotaUnits, Interrupted: t.Interrupted,
		Billing: drover.Billing{Granularity: d.read("type."+t.Name+".billed_by", t.Granularity), Minimum: d.read("type."+t.Name+".billed_at_least", t.Minimum)},
	}
}

// ParsePools reads pools from a file's text: pool blocks, or a whole agent's configuration; a name ending in .json is
// JSON, else HCL. Errors: Invalid, with file, line and the key that is wrong.
func ParsePools(data []byte, name string) ([]*drover.FleetPolicy, error) {
	list, _, err := ParseFleet(data, name)
	return list, err
}

// ParseFleet is ParsePools that also gives the providers of the file, if it has any. Errors: Invalid.
func ParseFleet(data []byte, name string) ([]*drover.FleetPolicy, []*FleetProvider, error) {
	parser := hclparse.NewParser()
	parse := parser.ParseHCL
	if strings.HasSuffix(name, ".json") {
		parse = parser.ParseJSON
	}
	file, diags := parse(data, name)
	if diags.HasErrors() {
		return nil, nil, diagnosed(diags)
	}
	var in struct {
		Pools     []*FleetPool     `hcl:"pool,block"`
		Providers []*FleetProvider `hcl:"provider,block"`
		Fleet     *Fleet           `hcl:"fleet,block"`
		Rest      hcl.Body         `hcl:",remain"`
	}
	if diags := gohcl.DecodeBody(file.Body, placeholders(), &in); diags.HasErrors() {
		return nil, nil, diagnosed(diags)
	}
	if in.Fleet != nil {
		in.Pools, in.Providers = append(in.Pools, in.Fleet.Pools...), append(in.Providers, in.Fleet.Providers...)
	}
	if len(in.Pools) == 0 {
		return nil, nil, drover.Errorf(drover.Invalid, "configuration: %s has no pool block", name)
	}
	var list []*drover.FleetPolicy
	for _, p := range in.Pools {
		policy, err := p.Policy()
		if err != nil {
			return nil, nil, err
		}
		list = append(list, policy)
	}
	return list, in.Providers, nil
}

// placeholders lets user data say ${token} and so on: what they stand for is known when a machine is made.
func placeholders() *hcl.EvalContext {
	vars := map[string]cty.Value{}
	for _, name := range []string{"config", "server", "token", "intent", "pool", "node_pool", "secret"} {
		vars[name] = cty.StringVal("${" + name + "}")
	}
	return &hcl.EvalContext{Variables: vars}
}
