package exchange

import (
	"context"
	"time"
)

// Lookups is control as it answers what the templates of a node's tasks ask.
type Lookups interface {
	// Look answers the questions whose answers are other ones than those that the node has seen. While there are none it waits, at
	// most maxWait, and then answers none. Each is answered with what its task may know. Errors: as Controller's; Invalid for more
	// than MaxLookups.
	Look(ctx context.Context, nodeID string, asked []Lookup, maxWait time.Duration) ([]Found, error)
}

// MaxLookups is how much can be asked at once.
const MaxLookups = 256

// Question is what a template asks. It is comparable.
type Question struct {
	Kind      string // one of the constants below
	Namespace string
	Name      string // the variable's path, the prefix of paths, or the service's name; none of AskServices
}

// What can be asked, and what an answer's data is, as JSON.
const (
	AskVariable  = "variable"  // secrets.Variable
	AskVariables = "variables" // []secrets.VariableMetadata, in order
	AskService   = "service"   // []service.Registration, in order
	AskServices  = "services"  // []ServiceTags, in order
)

// ServiceTags is a service with the tags of all its registrations, each once, in order.
type ServiceTags struct {
	ServiceName string
	Tags        []string
}

// Lookup is a question of an allocation's task.
type Lookup struct {
	AllocID  string
	Task     string
	Question Question
	Seen     string // version of the answer that the node has; "" = it has none
}

// Unanswered is the version of a Found that is none: control was asked often enough.
const Unanswered = "unanswered"

// Found is an answer.
type Found struct {
	At      int    // which of the questions it answers
	Version string // another one when the answer is another one; never ""
	Data    []byte // nil: there is no such thing
	Refused string // why the task gets no answer; "" = it gets one
	Gone    bool   // the allocation has ended, or is not the node's: others may still ask
}
