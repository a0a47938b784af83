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
	"github.com/drover-project/drover/fleet"
)

// Fleet is the configuration of machines that are bought and returned.
type Fleet struct {
	Owner string `hcl:"owner,optional"` // tag of our machines; default: made once and kept with the state
	// host:port that machines dial; default: advertise.rpc, else where rpc listens
	Server    string           `hcl:"server,optional"`
	Providers []*FleetProvider `hcl:"provider,block"`
	Pools     []*FleetPool     `hcl:"pool,block"`
}

// FleetProvider is a cloud. A key names the types that read it where not all do.
type FleetProvider struct {
	Name   string `hcl:"name,label"`
	Type   string `hcl:"type,optional"`   // which cloud it is: loopback, docker or ec2; default: the label
	Region string `hcl:"region,optional"` // ec2: region

	Dir  string     `hcl:"dir,optional"` // loopback: folder of its machines; path; default: fleet/NAME in data_dir
	Max  int        `hcl:"max,optional"` // loopback, docker: machines at most; 0 is no limit; default 0
	Room *FleetSize `hcl:"room,block"`   // of loopback and docker: what all machines together may take
	// docker: address of dockerd; ec2: base of the API, for tests and private clouds; URL
	Host string `hcl:"endpoint,optional"`

	Network        string            `hcl:"network,optional"`          // docker: network of the containers
	Subnets        map[string]string `hcl:"subnets,optional"`          // ec2: subnet by zone
	SecurityGroups []string          `hcl:"security_groups,optional"`  // ec2: security groups of the machines
	Profile        string            `hcl:"instance_profile,optional"` // ec2: instance profile of the machines
	KeyName        string            `hcl:"key_name,optional"`         // ec2: key pair of the machines
	// ec2: file of credentials; path; default: what the AWS CLI would find (environment, shared files, SSO, roles, the machine)
	CredentialFile string `hcl:"credentials,optional"`
	AccessKey      string `hcl:"access_key,optional" json:"-"` // ec2: access key
	SecretKey      string `hcl:"secret_key,optional" json:"-"` // ec2: secret key
	// ec2: root device of the image, such as /dev/xvda: with it the disk is as large as the type says
	RootDevice string `hcl:"root_device,optional"`
	// ec2: reach machines at their public addresses; default false
	PublicAddress *bool   `hcl:"public_address,optional"`
	PerSecond     float64 `hcl:"calls_per_second,optional"` // ec2: bound of our own calls; per second
	// ec2: how often spot prices are asked for; duration; default 15m
	PriceEvery string `hcl:"price_interval,optional"`
	// loopback: how long agents have to end; duration; default 3s
	StopTimeout string            `hcl:"stop_timeout,optional"`
	Env         map[string]string `hcl:"env,optional" json:"-"` // loopback: environment of the agents
	Privileged  *bool             `hcl:"privileged,optional"`   // docker: agents that run sandboxes need it; default false
	// docker: image of the machines; default: made from this program
	AgentImage string `hcl:"agent_image,optional"`
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
	CPU      int64 `hcl:"cpu,optional"`    // MHz; default 0, which is no limit
	MemoryMB int64 `hcl:"memory,optional"` // MB; default 0, which is no limit
	DiskMB   int64 `hcl:"disk,optional"`   // MB; default 0, which is no limit
}

func (s *FleetSize) capacity() drover.Capacity {
	if s == nil {
		return drover.Capacity{}
	}
	return drover.Capacity{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}
}

// Capacity returns the size; nothing if it is not set.
func (s *FleetSize) Capacity() drover.Capacity { return s.capacity() }

// FleetPool is a pool of machines: which may be bought, how many and for how much, and how they are treated.
type FleetPool struct {
	Name     string   `hcl:"name,label"`
	Provider string   `hcl:"provider"`           // name of a provider block
	Region   string   `hcl:"region,optional"`    // region of the machines; default: the provider's
	Zones    []string `hcl:"zones,optional"`     // zones that machines may be in; default one, named "default"
	NodePool string   `hcl:"node_pool,optional"` // pool of nodes that its machines join; default: the pool's name
	// datacenter of the nodes; only work that may run there is bought for; default: the server's
	Datacenter string `hcl:"datacenter,optional"`
	// "prefer" or "only" buys spot machines; default: on-demand machines only
	Spot  string `hcl:"spot,optional"`
	Image string `hcl:"image,optional"` // machine image, as the provider names it
	// given to the machine at boot; may hold ${config}, ${server}, ${token}, ${intent}, ${pool}, ${node_pool} and
	// ${secret}; default: what starts the agent
	UserData string            `hcl:"user_data,optional"`
	Tags     map[string]string `hcl:"tags,optional"` // tags of the machines

	Min      int     `hcl:"min,optional"`       // machines to keep; default 0
	Max      int     `hcl:"max,optional"`       // machines at most; 0 is no limit; default 0
	MaxPrice float64 `hcl:"max_price,optional"` // most that a machine may cost; 0 is no limit; $ per hour; default 0
	// what an hour of waiting of one piece of work is worth; $ per hour; default 1
	WaitCost float64 `hcl:"wait_cost,optional"`

	// how long a machine may be idle; duration; default: as long as it is worth by wait_cost
	Idle        string `hcl:"idle,optional"`
	Expire      string `hcl:"expire,optional"`       // age at which machines are replaced; duration; default never
	BootTimeout string `hcl:"boot_timeout,optional"` // upper bound of a boot; duration; default 15m
	// silence of an agent after which its machine is replaced; duration; default 10m
	LostTimeout string `hcl:"lost_timeout,optional"`
	// how long agents have to call home after the server's restart; duration; default 30s
	AdoptGrace string `hcl:"adopt_grace,optional"`
	// how long a machine without a known intent lives; duration; default 10m
	OrphanGrace string `hcl:"orphan_grace,optional"`
	// how long an idle machine without an answering server lives; duration; default 15m
	PowerOff    string  `hcl:"terminate_at_dead,optional"`
	Disruption  float64 `hcl:"disruption,optional"`  // share of machines that may be replaced at once; 0 to 1; default 0.1
	Consolidate *bool   `hcl:"consolidate,optional"` // move movable work off machines that can be saved; default false
	SpotSpread  int     `hcl:"spot_spread,optional"` // at most one nth of a purchase is on one spot offering; default 3
	BootProbe   string  `hcl:"boot_probe,optional"`  // command that must succeed before the machine takes work
	RunProbe    string  `hcl:"run_probe,optional"`   // command that must keep succeeding

	Limits   *FleetSize       `hcl:"limits,block"`
	Budget   *FleetBudget     `hcl:"budget,block"`
	SSH      *FleetSSH        `hcl:"ssh,block"`
	Types    []*FleetType     `hcl:"type,block"`
	Schedule []*FleetSchedule `hcl:"schedule,block"`
	Standby  []*FleetStandby  `hcl:"standby,block"`
}

// FleetBudget bounds the cost.
type FleetBudget struct {
	PerHour float64 `hcl:"per_hour,optional"` // bound of the cost; 0 is no limit; $ per hour; default 0
	PerDay  float64 `hcl:"per_day,optional"`  // bound of the cost; 0 is no limit; $ per day; default 0
	// what happens when it is spent, queue: nothing is bought; critical: only for work of critical_priority; alert: bought, and said; default queue
	AtLimit          string `hcl:"at_limit,optional"`
	CriticalPriority int    `hcl:"critical_priority,optional"` // priority of jobs from which work is critical; default 0
}

// FleetSSH is how machines without user data are reached.
type FleetSSH struct {
	User string `hcl:"user,optional"` // who logs in; others than root need sudo without a password; default root
	Port int    `hcl:"port,optional"` // port; default 22
	Key  string `hcl:"key"`           // private key, on the server; path
	// host keys or fingerprints; default: what the machine writes to its console
	HostKeys   []string `hcl:"host_keys,optional"`
	SecretFile string   `hcl:"secret_file,optional"` // file on the machine into which the user data wrote ${secret}; path
	Config     string   `hcl:"config,optional"`      // configuration of the agent; default ${config}
}

// FleetType is an instance type that a pool may buy.
type FleetType struct {
	Name       string            `hcl:"name,label"`
	CPU        int64             `hcl:"cpu"`                 // MHz
	MemoryMB   int64             `hcl:"memory"`              // MB
	DiskMB     int64             `hcl:"disk,optional"`       // MB; default 20000
	Price      float64           `hcl:"price"`               // on demand; $ per hour
	SpotPrice  float64           `hcl:"spot_price,optional"` // 0 is not sold as spot; $ per hour; default 0
	Devices    map[string]int    `hcl:"devices,optional"`    // how many of each device, by the name that tasks ask for
	Attributes map[string]string `hcl:"attributes,optional"` // of the node that it becomes: cpu.arch, …
	// types that fail together; default: the name up to the first digit or dot
	Family string `hcl:"family,optional"`
	// types that share a quota; spot has a group of its own; default: the family
	QuotaGroup  string  `hcl:"quota_group,optional"`
	QuotaUnits  int64   `hcl:"quota_units,optional"`     // what one takes of the quota; default 1
	Granularity string  `hcl:"billed_by,optional"`       // charged in multiples of it; duration; default 1s
	Minimum     string  `hcl:"billed_at_least,optional"` // charged at least; duration; default 0s
	Interrupted float64 `hcl:"interruptions,optional"`   // expected interruptions as spot; per hour; default 0
}

// FleetSchedule keeps a minimum at certain times.
type FleetSchedule struct {
	Cron     string `hcl:"cron"`          // five fields: minute, hour, day of month, month, day of week
	Zone     string `hcl:"zone,optional"` // time zone; default UTC
	Duration string `hcl:"duration"`      // how long from each time that cron names; duration
	Min      int    `hcl:"min"`           // machines to keep meanwhile
}

// FleetStandby is room that is kept free.
type FleetStandby struct {
	CPU      int64 `hcl:"cpu,optional"`    // of each piece; MHz; default 0
	MemoryMB int64 `hcl:"memory,optional"` // of each piece; MB; default 0
	DiskMB   int64 `hcl:"disk,optional"`   // of each piece; MB; default 0
	Count    int   `hcl:"count"`           // pieces of room that are kept free
}

// Policy returns the pool as the fleet knows it, canonicalized and checked. Errors: Invalid, with all that is wrong.
func (p *FleetPool) Policy() (*fleet.Policy, error) {
	d := &durations{}
	out := &fleet.Policy{
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
		out.Budget = fleet.Budget(*b)
	}
	if s := p.SSH; s != nil {
		out.SSH = &fleet.SSH{User: s.User, Port: s.Port, Key: s.Key, HostKeys: s.HostKeys, SecretFile: s.SecretFile, Config: s.Config}
	}
	for _, t := range p.Types {
		out.Types = append(out.Types, t.instanceType(d))
	}
	for _, s := range p.Schedule {
		out.Schedule = append(out.Schedule, fleet.Schedule{Cron: s.Cron, Zone: s.Zone, Duration: d.read("schedule.duration", s.Duration), Min: s.Min})
	}
	for _, s := range p.Standby {
		out.Standby = append(out.Standby, fleet.Standby{Each: drover.Capacity{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}, Count: s.Count})
	}
	if len(d.wrong) > 0 {
		return nil, drover.Errorf(drover.Invalid, "fleet pool %q: %s", p.Name, strings.Join(d.wrong, "; "))
	}
	out.Canonicalize()
	return out, out.Validate()
}

func (t *FleetType) instanceType(d *durations) fleet.InstanceType {
	return fleet.InstanceType{
		Name: t.Name, Capacity: drover.Capacity{CPU: t.CPU, MemoryMB: t.MemoryMB, DiskMB: t.DiskMB}, Devices: t.Devices,
		Attributes: t.Attributes, Price: t.Price, SpotPrice: t.SpotPrice, Family: t.Family, QuotaGroup: t.QuotaGroup,
		QuotaUnits: t.QuotaUnits, Interrupted: t.Interrupted,
		Billing: fleet.Billing{Granularity: d.read("type."+t.Name+".billed_by", t.Granularity), Minimum: d.read("type."+t.Name+".billed_at_least", t.Minimum)},
	}
}

// ParsePools reads pools from a file's text: pool blocks, or a whole agent's configuration; a name ending in .json is
// JSON, else HCL. Errors: Invalid, with file, line and the key that is wrong.
func ParsePools(data []byte, name string) ([]*fleet.Policy, error) {
	list, _, err := ParseFleet(data, name)
	return list, err
}

// ParseFleet is ParsePools that also gives the providers of the file, if it has any. Errors: Invalid.
func ParseFleet(data []byte, name string) ([]*fleet.Policy, []*FleetProvider, error) {
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
	var list []*fleet.Policy
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
