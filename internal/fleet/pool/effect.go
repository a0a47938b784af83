package pool

import (
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// EffectKind says what is to be done outside.
type EffectKind string

// The kinds, and what to tell the core when they are done.
const (
	EffectRecord  EffectKind = "record"  // record the intents through the raft log; then Recorded
	EffectCreate  EffectKind = "create"  // Provider.Create; then Created
	EffectDestroy EffectKind = "destroy" // Provider.Destroy; then Destroyed
	EffectList    EffectKind = "list"    // Provider.List, all pages; then Listed
	EffectTag     EffectKind = "tag"     // Provider.SetTags; then Tagged
	EffectDrain   EffectKind = "drain"   // Nodes.Drain
	EffectCordon  EffectKind = "cordon"  // Nodes.Cordon
	EffectUndrain EffectKind = "undrain" // Nodes.Undrain
	EffectForget  EffectKind = "forget"  // drop the intents of machines that are gone
)

// Effect is one thing to do outside. Slices and maps in it are not changed afterwards.
type Effect struct {
	Kind       EffectKind
	Intents    []fleet.Durable // of record: machines that are decided upon; of forget: with the ID only
	Request    *provider.Request
	Instance   string
	ProviderID string
	NodeID     string
	Tags       map[string]string
	Console    bool      // of destroy: read first what the machine wrote, it did not boot
	Deadline   time.Time // of drain: when the machine goes anyway; zero = never
}

// restored takes over what the log knew of the machine before a restart.
func restored(i *fleet.Instance, log *fleet.Durable) {
	i.Charged, i.Bought, i.LastError, i.ReadyAt, i.IdleAt = log.Charged, log.Bought, log.LastError, log.ReadyAt, log.IdleAt
	if !log.RepricedAt.IsZero() {
		i.Price, i.RepricedAt, i.CostBefore = log.Price, log.RepricedAt, log.CostBefore
	}
}

// CloudFails is the fleet.Audit.What that says that a cloud can't be used, and why.
const CloudFails = "cloud fails"

// CreateFails is the fleet.Audit.What that says what a cloud answered instead of making machines.
const CreateFails = "create failed"

// Node is what the fleet needs of control about a machine's node.
type Node struct {
	ID     string
	Intent string // of the token that its agent showed
	Report Report
	Lost   bool
	Silent bool // this server has not heard it since it leads: it is known from the log alone
}

// request builds a create. Fleet tags are set after the policy's own, so that a policy cannot overwrite them.
func request(p *fleet.Policy, template, owner string, o *fleet.Offering, intents []provider.Intent) *provider.Request {
	tags := map[string]string{}
	for k, v := range p.Tags {
		tags[k] = v
	}
	tags[fleet.TagOwner], tags[fleet.TagPool] = owner, p.Name
	tags[fleet.TagOffering], tags[fleet.TagTemplate] = o.Key, template
	return &provider.Request{Intents: intents, Offering: *o, Image: p.Image, Tags: tags}
}
