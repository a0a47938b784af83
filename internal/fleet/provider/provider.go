package provider

import (
	"context"
	"time"

	"github.com/drover-project/drover/fleet"
)

// Kinds of providers that there are.
const (
	KindLoopback = "loopback"
	KindDocker   = "docker"
	KindEC2      = "ec2"
)

// Provider is a cloud. All methods may be called from several goroutines at once.
type Provider interface {
	// Create asks for one machine or several. Machines carry req.Tags from their first moment, so none can leak. A
	// second call with the same intents gives the same machines, if Capabilities.Idempotent. It may give fewer than
	// asked for, with the error that stopped it. Errors: *Error.
	Create(ctx context.Context, req Request) ([]Machine, error)
	// List gives a page of the machines whose tag fleet.TagOwner is the provider's owner, booting and dying ones
	// included. It may be stale, and may omit the newest. page "" is the first; next "" was the last.
	List(ctx context.Context, page string) (machines []Machine, next string, err error)
	// Destroy is done once the cloud accepted it. Errors: NotFound once the machine is gone.
	Destroy(ctx context.Context, id string) error
	// SetTags sets these tags and leaves others. Errors: NotFound.
	SetTags(ctx context.Context, id string, tags map[string]string) error
	// Capabilities never changes for a provider.
	Capabilities() Capabilities
}

// Pricer is a provider that tells what offerings cost now, where that changes.
type Pricer interface {
	// Prices returns prices per hour by the offering's key, of those of the offerings whose price it knows.
	Prices(ctx context.Context, offerings []fleet.Offering) (map[string]float64, error)
}

// Consoler is a provider that tells what a machine wrote to its console, for people who look why it does not boot, and
// for its host key.
type Consoler interface {
	// Console returns the last of it; nothing if the cloud has nothing yet. Errors: NotFound.
	Console(ctx context.Context, id string) ([]byte, error)
}

// Request asks for equal machines, one an intent.
type Request struct {
	Intents  []Intent
	Offering fleet.Offering
	Image    string
	Tags     map[string]string // of all of them
}

// Intent is one machine that we decided to buy; its ID is the cloud's idempotency key.
type Intent struct {
	ID       string
	UserData string
	Tags     map[string]string
}

// State is a machine's state as clouds tell it.
type State string

// The states.
const (
	Pending     State = "pending"
	Running     State = "running"
	Terminating State = "terminating"
	Terminated  State = "terminated"
)

// Machine is what the cloud tells of a machine.
type Machine struct {
	ID        string // the cloud's
	Intent    string // from its tags
	Type      string
	Zone      string
	Market    string
	State     State `json:",omitempty"`
	Address   string
	Tags      map[string]string
	CreatedAt time.Time
}

// Capabilities is what a provider can do.
type Capabilities struct {
	Idempotent  bool          // Create may be repeated with the same intents
	Batch       int           // machines a Create; at least 1
	Shared      bool          // the machines of one Create have equal user data, and intents of one Batch
	Visible     time.Duration // after which a created machine is surely in List
	UserDataMax int           // bytes; 0 = no user data
	Interrupts  bool          // tells of interruptions
	Waits       bool          // Destroy returns when the machine is gone
	Reprices    bool          // spot machines that run cost what their offering costs now, not what it did when they were bought
	Rates       map[Call]Rate // what the cloud allows, as far as known; of creates machines are counted
	Creates     Rate          // calls of Create, however many machines they ask for; zero = as Rates say
}

// Call is a kind of call with a rate limit of its own.
type Call string

// The kinds.
const (
	CallCreate  Call = "create"
	CallDestroy Call = "destroy"
	CallList    Call = "list"
	CallTag     Call = "tag"
)

// Rate is a token bucket: PerSecond tokens come, Burst can be saved up.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// ConsoleOf returns what reads what the machine wrote; nil if the provider does not show that.
func ConsoleOf(p Provider, id string) func(context.Context) ([]byte, error) {
	shows, ok := p.(Consoler)
	if !ok {
		return nil
	}
	return func(ctx context.Context) ([]byte, error) { return shows.Console(ctx, id) }
}
