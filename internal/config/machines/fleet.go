package machines

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/config/form"
	"github.com/drover-project/drover/internal/optional"
)

// Fleet is the configuration of machines that are bought and returned.
type Fleet struct {
	// tag of our machines, which no other living cluster may have; default: made once and kept with the state
	Owner string `hcl:"owner,optional"`
	// host:port that machines dial; default: advertise.rpc, else where rpc listens
	Server    string      `hcl:"server,optional"`
	Providers []*Provider `hcl:"provider,block"`
	Pools     []*Pool     `hcl:"pool,block"`
}

// Provider is a cloud. A key names the types that read it where not all do.
type Provider struct {
	Name   string `hcl:"name,label"`
	Type   string `hcl:"type,optional"`   // which cloud it is: loopback, docker or ec2; default: the label
	Region string `hcl:"region,optional"` // ec2: region

	// loopback: folder of its machines, the same for all servers; path; default: fleet/NAME in data_dir, if there is one server
	Dir  string     `hcl:"dir,optional"`
	Max  int        `hcl:"max,optional"` // loopback, docker: machines at most; 0 is no limit; default 0
	Room *form.Size `hcl:"room,block"`   // of loopback and docker: what all machines together may take
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
func (p *Provider) Kind() string {
	if p.Type == "" {
		return p.Name
	}
	return p.Type
}

// Setting names what these settings put into machines, beside what pools do; "" = nothing. Machines that were made with
// another one are replaced.
func (p *Provider) Setting() string {
	var made []any
	switch p.Kind() {
	case "docker":
		made = []any{p.AgentImage, p.Network, optional.Value(p.Privileged)}
	case "ec2":
		made = []any{p.Subnets, p.SecurityGroups, p.Profile, p.KeyName, p.RootDevice, optional.Value(p.PublicAddress)}
	default: // agents of this machine: its environment may hold secrets, and is no part of a machine
		return ""
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%q", made) // a hash takes everything; maps are printed in the order of their keys
	return fmt.Sprintf("%08x", h.Sum32())
}

// Pool is a pool block: fleet.Policy as files say it.
type Pool struct {
	Name string   `hcl:"name,label"`
	Keys hcl.Body `hcl:",remain"`
	said any      // a pointer to the form of fleet.Policy
}

var policyForm = form.Of(reflect.TypeFor[fleet.Policy]())

// read decodes what the block says. Errors: its unknown and wrong keys.
func (p *Pool) read() hcl.Diagnostics {
	said := reflect.New(policyForm)
	diags := gohcl.DecodeBody(p.Keys, Placeholders(), said.Interface())
	said.Elem().FieldByName("Name").SetString(p.Name)
	p.said, p.Keys = said.Interface(), nil
	return diags
}

// MarshalJSON shows the block as it was written.
func (p *Pool) MarshalJSON() ([]byte, error) { return json.Marshal(p.said) }

// Said is the block as it was written: a pointer to a struct with hcl tags; nil before it is read.
func (p *Pool) Said() any { return p.said }

// text returns what the block says for a field of the policy that is a text.
func (p *Pool) text(field string) string {
	return reflect.ValueOf(p.said).Elem().FieldByName(field).String()
}

// Policy returns the pool as the fleet knows it, canonicalized and checked. Errors: Invalid, with all that is wrong.
func (p *Pool) Policy() (*fleet.Policy, error) {
	out, d := &fleet.Policy{}, &form.Durations{}
	d.Fill(reflect.ValueOf(out).Elem(), reflect.ValueOf(p.said).Elem(), "")
	if len(out.Zones) == 0 {
		out.Zones = []string{"default"}
	}
	if len(d.Wrong) > 0 {
		return nil, drover.Errorf(drover.Invalid, "fleet pool %q: %s", p.Name, strings.Join(d.Wrong, "; "))
	}
	out.Canonicalize()
	return out, out.Validate()
}

// ReadPools decodes what pool blocks say. Errors: their unknown and wrong keys.
func ReadPools(pools []*Pool) (diags hcl.Diagnostics) {
	for _, p := range pools {
		diags = append(diags, p.read()...)
	}
	return diags
}

// ParsePools reads pools from a file's text: pool blocks, or a whole agent's configuration; a name ending in .json is
// JSON, else HCL. Errors: Invalid, with file, line and the key that is wrong.
func ParsePools(data []byte, name string) ([]*fleet.Policy, error) {
	list, _, err := ParseFleet(data, name)
	return list, err
}

// ParseFleet is ParsePools that also gives the providers of the file, if it has any. Errors: Invalid.
func ParseFleet(data []byte, name string) ([]*fleet.Policy, []*Provider, error) {
	parser := hclparse.NewParser()
	parse := parser.ParseHCL
	if strings.HasSuffix(name, ".json") {
		parse = parser.ParseJSON
	}
	file, diags := parse(data, name)
	if diags.HasErrors() {
		return nil, nil, form.Diagnosed(diags)
	}
	var in struct {
		Pools     []*Pool     `hcl:"pool,block"`
		Providers []*Provider `hcl:"provider,block"`
		Fleet     *Fleet      `hcl:"fleet,block"`
		Rest      hcl.Body    `hcl:",remain"`
	}
	if diags := gohcl.DecodeBody(file.Body, Placeholders(), &in); diags.HasErrors() {
		return nil, nil, form.Diagnosed(diags)
	}
	if in.Fleet != nil {
		in.Pools, in.Providers = append(in.Pools, in.Fleet.Pools...), append(in.Providers, in.Fleet.Providers...)
	}
	if diags := ReadPools(in.Pools); diags.HasErrors() {
		return nil, nil, form.Diagnosed(diags)
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

// Placeholders lets user data say ${token} and so on: what they stand for is known when a machine is made.
func Placeholders() *hcl.EvalContext {
	vars := map[string]cty.Value{}
	for _, name := range []string{"config", "server", "token", "intent", "pool", "node_pool", "secret"} {
		vars[name] = cty.StringVal("${" + name + "}")
	}
	return &hcl.EvalContext{Variables: vars}
}
