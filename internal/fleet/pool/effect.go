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
	Intents    []Intent // of record and forget
	Request    *provider.Request
	Instance   string
	ProviderID string
	NodeID     string
	Tags       map[string]string
	Console    bool      // of destroy: read first what the machine wrote, it did not boot
	Deadline   time.Time // of drain: when the machine goes anyway; zero = never
}

// Intent is the decision to buy a machine, as it is recorded before the create.
type Intent struct {
	ID       string
	Pool     string
	Offering string
	Template string
	At       time.Time
	Charged  float64 // by the ledger, before a restart
	// Price, RepricedAt and CostBefore are as in fleet.Instance, before a restart.
	Price      float64
	RepricedAt time.Time
	CostBefore float64
	NodeID     string // that used its token, before a restart
	Behavior   fleet.IdleBehavior
	Bought     string // why
	LastError  string // before a restart, as ReadyAt and IdleAt
	ReadyAt    time.Time
	IdleAt     time.Time
	Answered   bool // the cloud said that it made it, before a restart
	Killed     bool // by an operator, before a restart
}

// restored takes over what was known of the machine before a restart.
func (in Intent) restored(i *fleet.Instance) {
	i.Bought, i.LastError, i.ReadyAt, i.IdleAt = in.Bought, in.LastError, in.ReadyAt, in.IdleAt
	in.priced(i)
}

// priced takes over at which prices the machine ran before a restart.
func (in Intent) priced(i *fleet.Instance) {
	if !in.RepricedAt.IsZero() {
		i.Price, i.RepricedAt, i.CostBefore = in.Price, in.RepricedAt, in.CostBefore
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
}

func request(p *fleet.Policy, template, owner string, o *fleet.Offering, intents []provider.Intent) *provider.Request {
	tags := map[string]string{}
	for k, v := range p.Tags {
		tags[k] = v
	}
	tags[fleet.TagOwner], tags[fleet.TagPool] = owner, p.Name
	tags[fleet.TagOffering], tags[fleet.TagTemplate] = o.Key, template
	return &provider.Request{Intents: intents, Offering: *o, Image: p.Image, Tags: tags}
}
