package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Create implements provider.Provider: one call a batch, or an intent that is bought alone. It gives every machine of a
// batch, also those that were not asked for, as the whole batch is asked for whichever of its intents are.
func (p *Provider) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	for left := req.Intents; len(left) > 0; {
		n := 1
		b, _, several := provider.BatchOf(left[0].ID)
		for several && n < len(left) && sameBatch(b, left[n].ID) {
			n++
		}
		list, err := p.create(ctx, &req, left[:n])
		made = append(made, list...)
		if err != nil {
			return made, err
		}
		left = left[n:]
	}
	return made, nil
}

// create makes one call, for intents of one batch or one that is alone.
func (p *Provider) create(ctx context.Context, req *provider.Request, intents []provider.Intent) (made []provider.Machine, err error) {
	o := &req.Offering
	for k := range intents {
		switch data := intents[k].UserData; {
		case len(data) > userDataMax:
			return nil, &provider.Error{Kind: provider.Config, Message: fmt.Sprintf("user data: has %d bytes, %d are possible", len(data),
				userDataMax)}
		case data != intents[0].UserData:
			return nil, &provider.Error{Kind: provider.Config, Message: "user data: differs between the machines of a batch"}
		}
	}
	var answer struct {
		XMLName   xml.Name   `xml:"RunInstancesResponse"`
		Instances []instance `xml:"instancesSet>item"`
	}
	about := subject{group: o.QuotaGroup, what: strings.TrimSpace(o.Type + " " + o.Market + " in " + o.Zone)}
	b, _, several := provider.BatchOf(intents[0].ID)
	if err := p.call(ctx, provider.CallCreate, "RunInstances", p.order(req, &intents[0]), &answer, about); err != nil {
		return nil, unsure(err, several)
	}
	if !several && len(answer.Instances) != 1 || len(answer.Instances) == 0 || several && len(answer.Instances) > b.Size {
		return nil, &provider.Error{Kind: provider.Ambiguous, Message: fmt.Sprintf("asked for %d machines, got %d", max(b.Size, 1),
			len(answer.Instances))}
	}
	there := map[string]bool{}
	for k := range answer.Instances {
		m := p.machine(&answer.Instances[k])
		p.made(m.ID)
		if !several && m.Intent == "" { // answers need not have the tags yet
			m.Tags, m.Intent = tagsOf(req, &intents[0]), intents[0].ID
		}
		if several && m.Intent == "" {
			m.Tags = tagsOf(req, &provider.Intent{Tags: map[string]string{fleet.TagBatch: b.String()}})
			m.Intent = b.Intent(answer.Instances[k].Index)
		}
		there[m.Intent] = true
		made = append(made, m)
	}
	for k := range intents {
		if !there[intents[k].ID] { // Amazon makes as many as it has, and the same ones when it is asked again
			return made, &provider.Error{
				Kind: provider.Capacity, Scope: provider.ScopeOffering, Message: fmt.Sprintf("%s: Amazon made %d of %d machines", about.what,
					len(made), b.Size),
			}
		}
	}
	return made, nil
}

// unsure takes what Amazon says about the token of a batch for what it is: the batch was made, and which of its machines
// are there a list tells.
func unsure(err error, several bool) error {
	var e *provider.Error
	if several && errors.As(err, &e) && strings.Contains(e.Message, "IdempotentInstanceTerminated") {
		e.Kind = provider.Ambiguous
	}
	return err
}

// order is the form of a RunInstances: of the whole batch if the intent is of one.
func (p *Provider) order(req *provider.Request, intent *provider.Intent) url.Values {
	o := &req.Offering
	f := url.Values{}
	set := func(key, value string) {
		if value != "" {
			f.Set(key, value)
		}
	}
	tags, key, most := tagsOf(req, intent), intent.ID, 1
	if b, _, several := provider.BatchOf(intent.ID); several {
		tags, key, most = tagsOf(req, &provider.Intent{Tags: map[string]string{fleet.TagBatch: b.String()}}), b.String(), b.Size
	}
	tags["Name"] = strings.Trim("drover-"+tags[fleet.TagPool], "-")
	set("ClientToken", clientToken(tags[fleet.TagOwner], key))
	set("ImageId", req.Image)
	set("InstanceType", o.Type)
	set("MinCount", "1")
	set("MaxCount", strconv.Itoa(most))
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
	if o.Market == fleet.MarketSpot {
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

func sameBatch(b provider.Batch, intent string) bool {
	other, _, ok := provider.BatchOf(intent)
	return ok && other == b
}

// tagsOf are the tags of the request and of the intent, which wins.
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

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
