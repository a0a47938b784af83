package ec2

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"drover"
	"drover/internal/fleet/provider"
)

// Create implements provider.Provider: one call an intent, so that each has its own user data and tags.
func (p *Provider) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	for i := range req.Intents {
		m, err := p.create(ctx, &req, &req.Intents[i])
		if err != nil {
			return made, err
		}
		made = append(made, m)
	}
	return made, nil
}

func (p *Provider) create(ctx context.Context, req *provider.Request, intent *provider.Intent) (m provider.Machine, err error) {
	o := &req.Offering
	if len(intent.UserData) > userDataMax {
		return m, &provider.Error{Kind: provider.Config, Message: fmt.Sprintf("user data: has %d bytes, %d are possible", len(intent.UserData), userDataMax)}
	}
	var answer struct {
		XMLName   xml.Name   `xml:"RunInstancesResponse"`
		Instances []instance `xml:"instancesSet>item"`
	}
	about := subject{group: o.QuotaGroup, what: strings.TrimSpace(o.Type + " " + o.Market + " in " + o.Zone)}
	if err := p.call(ctx, provider.CallCreate, "RunInstances", p.order(req, intent), &answer, about); err != nil {
		return m, err
	}
	if len(answer.Instances) != 1 {
		return m, &provider.Error{Kind: provider.Ambiguous, Message: fmt.Sprintf("asked for one machine, got %d", len(answer.Instances))}
	}
	m = p.machine(&answer.Instances[0])
	p.made(m.ID)
	if m.Tags[drover.TagIntent] == "" { // answers need not have the tags yet
		m.Tags, m.Intent = tagsOf(req, intent), intent.ID
	}
	return m, nil
}

// order is the form of a RunInstances.
func (p *Provider) order(req *provider.Request, intent *provider.Intent) url.Values {
	o := &req.Offering
	f := url.Values{}
	set := func(key, value string) {
		if value != "" {
			f.Set(key, value)
		}
	}
	tags := tagsOf(req, intent)
	tags["Name"] = strings.Trim("drover-"+tags[drover.TagPool], "-")
	set("ClientToken", clientToken(tags[drover.TagOwner], intent.ID))
	set("ImageId", req.Image)
	set("InstanceType", o.Type)
	set("MinCount", "1")
	set("MaxCount", "1")
	set("KeyName", p.cfg.KeyName)
	set("SubnetId", p.cfg.Subnets[o.Zone])
	set("Placement.AvailabilityZone", o.Zone)
	for n, id := range p.cfg.SecurityGroups {
		set(fmt.Sprintf("SecurityGroupId.%d", n+1), id)
	}
	if strings.HasPrefix(p.cfg.InstanceProfile, "arn:") {
		set("IamInstanceProfile.Arn", p.cfg.InstanceProfile)
	} else {
		set("IamInstanceProfile.Name", p.cfg.InstanceProfile)
	}
	set("InstanceInitiatedShutdownBehavior", "terminate")
	set("MetadataOptions.HttpTokens", "required")
	if intent.UserData != "" {
		set("UserData", base64.StdEncoding.EncodeToString([]byte(intent.UserData)))
	}
	if o.Market == drover.MarketSpot {
		set("InstanceMarketOptions.MarketType", "spot")
		set("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time")
		set("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate")
	}
	if p.cfg.RootDevice != "" && o.Capacity.DiskMB > 0 {
		set("BlockDeviceMapping.1.DeviceName", p.cfg.RootDevice)
		set("BlockDeviceMapping.1.Ebs.VolumeSize", strconv.FormatInt((o.Capacity.DiskMB+1023)/1024, 10))
		set("BlockDeviceMapping.1.Ebs.VolumeType", "gp3")
		set("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true")
	}
	for r, resource := range []string{"instance", "volume"} {
		prefix := fmt.Sprintf("TagSpecification.%d.", r+1)
		f.Set(prefix+"ResourceType", resource)
		setTags(f, prefix, tags)
	}
	return f
}

// setTags writes tags into a form, in an order that is always the same: a repeated create must be equal to the first.
func setTags(f url.Values, prefix string, tags map[string]string) {
	for n, key := range slices.Sorted(maps.Keys(tags)) {
		f.Set(fmt.Sprintf("%sTag.%d.Key", prefix, n+1), key)
		f.Set(fmt.Sprintf("%sTag.%d.Value", prefix, n+1), tags[key])
	}
}

func tagsOf(req *provider.Request, intent *provider.Intent) map[string]string {
	tags := maps.Clone(req.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, intent.Tags)
	return tags
}

// clientToken is the cloud's idempotency key: 64 characters, another one for each Drover of an account.
func clientToken(owner, intent string) string { return hash([]byte(owner + "\x00" + intent)) }
