package ec2

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// instance is what the API tells of one.
type instance struct {
	ID      string `xml:"instanceId"`
	State   string `xml:"instanceState>name"`
	Type    string `xml:"instanceType"`
	Zone    string `xml:"placement>availabilityZone"`
	Launch  string `xml:"launchTime"`
	Private string `xml:"privateIpAddress"`
	Public  string `xml:"ipAddress"`
	Market  string `xml:"instanceLifecycle"`
	Index   int    `xml:"amiLaunchIndex"`
	Tags    []struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	} `xml:"tagSet>item"`
}

// List implements provider.Provider.
func (p *Provider) List(ctx context.Context, page string) (list []provider.Machine, next string, err error) {
	form := url.Values{
		"Filter.1.Name": {"tag:" + fleet.TagOwner}, "Filter.1.Value.1": {p.cfg.Owner},
		"MaxResults": {strconv.Itoa(pageSize)},
	}
	for n, other := range p.cfg.Others {
		form.Set("Filter.1.Value."+strconv.Itoa(n+2), other)
	}
	if page != "" {
		form.Set("NextToken", page)
	}
	var answer struct {
		XMLName      xml.Name `xml:"DescribeInstancesResponse"`
		Reservations []struct {
			Instances []instance `xml:"instancesSet>item"`
		} `xml:"reservationSet>item"`
		Next string `xml:"nextToken"`
	}
	if err := p.call(ctx, provider.CallList, "DescribeInstances", form, &answer, subject{}); err != nil {
		return nil, "", err
	}
	for _, r := range answer.Reservations {
		for i := range r.Instances {
			list = append(list, p.machine(&r.Instances[i]))
		}
	}
	return list, answer.Next, nil
}

// machine is an instance as the seam tells it.
func (p *Provider) machine(i *instance) provider.Machine {
	m := provider.Machine{
		ID: i.ID, Type: i.Type, Zone: i.Zone, Market: fleet.MarketOnDemand, State: provider.Pending, Address: i.Private,
		Tags: map[string]string{},
	}
	if i.Market == "spot" {
		m.Market = fleet.MarketSpot
	}
	if p.cfg.PublicAddress {
		m.Address = i.Public
	}
	for _, t := range i.Tags {
		m.Tags[t.Key] = t.Value
	}
	m.Intent = m.Tags[fleet.TagIntent]
	if b, ok := provider.ParseBatch(m.Tags[fleet.TagBatch]); ok && m.Intent == "" && i.Index >= 0 && i.Index < b.Size {
		m.Intent = b.Intent(i.Index) // its own tags come after it is made, or never
	}
	m.CreatedAt, _ = time.Parse(time.RFC3339Nano, i.Launch) // without it the caller counts from when it saw it
	switch i.State {
	case "running", "stopping", "stopped": // whoever stopped it: it is there, and its agent is silent
		m.State = provider.Running
	case "shutting-down":
		m.State = provider.Terminating
	case "terminated":
		m.State = provider.Terminated
	}
	return m
}

// Destroy implements provider.Provider. Amazon accepts it again for as long as it remembers the machine.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	var answer struct {
		XMLName xml.Name `xml:"TerminateInstancesResponse"`
	}
	return p.sure(id, p.call(ctx, provider.CallDestroy, "TerminateInstances", url.Values{"InstanceId.1": {id}}, &answer, subject{}))
}

// SetTags implements provider.Provider.
func (p *Provider) SetTags(ctx context.Context, id string, tags map[string]string) error {
	form := url.Values{"ResourceId.1": {id}}
	setTags(form, "", tags)
	var answer struct {
		XMLName xml.Name `xml:"CreateTagsResponse"`
	}
	return p.sure(id, p.call(ctx, provider.CallTag, "CreateTags", form, &answer, subject{}))
}

// made notes a machine that we just made.
func (p *Provider) made(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for old, at := range p.fresh {
		if now.Sub(at) > visible {
			delete(p.fresh, old)
		}
	}
	p.fresh[id] = now
}

// sure takes NotFound for what it is: of a machine that we just made it says that Amazon's left hand does not know yet
// what the right one did. Whoever believed it would forget a machine that costs.
func (p *Provider) sure(id string, err error) error {
	if err == nil || provider.KindOf(err) != provider.NotFound {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.fresh[id]; ok && p.clock.Now().Sub(at) <= visible {
		return &provider.Error{Kind: provider.Transient, Message: "not to be seen yet: " + err.Error()}
	}
	return err
}

// Console implements provider.Consoler. Amazon shows it minutes late.
func (p *Provider) Console(ctx context.Context, id string) ([]byte, error) {
	var answer struct {
		XMLName xml.Name `xml:"GetConsoleOutputResponse"`
		Output  string   `xml:"output"`
	}
	if err := p.call(ctx, provider.CallList, "GetConsoleOutput", url.Values{"InstanceId": {id}, "Latest": {"true"}}, &answer,
		subject{}); err != nil {
		return nil, err
	}
	text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(answer.Output), ""))
	if err != nil {
		return nil, &provider.Error{Kind: provider.Transient, Message: "reading the console: " + err.Error()}
	}
	return text, nil
}
