package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
)

// Place is a kind of agent that can answer a request.
type Place uint8

// The places. AtLeader, AtReads and AtAuthority wait for a leader, for a bounded time.
const (
	unsaid       Place = iota // a mistake, which a test finds
	AtHere                    // the agent that is asked, of itself; it knows no region
	AtAny                     // any server of the region that is asked for
	AtLeader                  // writes, and what only the leader knows
	AtReads                   // the leader; any server with ?stale, and with ?consistent one that caught up with the leader
	AtReadsAlone              // AtReads for GET, AtLeader for all other methods
	AtRunner                  // the server that keeps the runner
	AtExecution               // the server that knows the execution
	AtClaim                   // a server that has a warm runner of the environment
	AtNode                    // a server that reaches the node; "" = the agent that is asked
	AtAllocation              // a server that reaches the allocation's node
	AtMember                  // the server that ?server_id names, by id or name, or "leader", or one that reaches ?node_id; else who is asked
	AtAuthority               // the leader of the authoritative region, whatever region is asked for
)

// Said reports whether the place is one: the zero Place is none.
func (p Place) Said() bool { return p > unsaid && p <= AtAuthority }

// Key finds in a request what its place depends on. Errors: Invalid.
type Key func(r *http.Request) (string, error)

// Where says where a route's requests are answered.
type Where struct {
	Place Place
	Key   Key // nil where the place depends on nothing
	// Region is the region that the request is for where Region(r) names none; "" is this one. Nil where only that says so.
	Region Key
}

// Of returns the same place, in the region that the key names where the request's query and headers name none.
func (w Where) Of(region Key) Where {
	w.Region = region
	return w
}

// Region is the region that a request asks for in its query or, as some clients do, in a header; "" if it asks for none.
func Region(r *http.Request) string {
	if r.URL.RawQuery != "" {
		if region := r.URL.Query().Get("region"); region != "" {
			return region
		}
	}
	return r.Header.Get("X-Nomad-Region")
}

// Places that depend on nothing but the route.
var (
	Here       = Where{Place: AtHere}
	Any        = Where{Place: AtAny}
	Leader     = Where{Place: AtLeader}
	Reads      = Where{Place: AtReads}
	ReadsAlone = Where{Place: AtReadsAlone}
	Authority  = Where{Place: AtAuthority}
	Member     = Where{Place: AtMember, Key: QueryKey("server_id")}
)

// Runner is the server that keeps the runner.
func Runner(k Key) Where { return Where{Place: AtRunner, Key: k} }

// Execution is the server that knows the execution.
func Execution(k Key) Where { return Where{Place: AtExecution, Key: k} }

// Claim is a server that has a warm runner of the environment.
func Claim(k Key) Where { return Where{Place: AtClaim, Key: k} }

// Node is a server that reaches the node.
func Node(k Key) Where { return Where{Place: AtNode, Key: k} }

// Allocation is a server that reaches the allocation's node.
func Allocation(k Key) Where { return Where{Place: AtAllocation, Key: k} }

// PathKey is a part of the route's path.
func PathKey(name string) Key {
	return func(r *http.Request) (string, error) { return r.PathValue(name), nil }
}

// QueryKey is a parameter of the query.
func QueryKey(name string) Key {
	return func(r *http.Request) (string, error) { return r.URL.Query().Get(name), nil }
}

// BodyKey is a text or number among the fields of a body that is a JSON object. Several names are a path through objects in
// objects. It is "" if there is none, or if the body is something else: the handler that decodes it says so.
// What is read of the body stays to be read.
func BodyKey(names ...string) Key {
	return func(r *http.Request) (string, error) {
		if r.Body == nil || r.Body == http.NoBody {
			return "", nil
		}
		var read bytes.Buffer
		value := field(json.NewDecoder(io.TeeReader(r.Body, &read)), names)
		r.Body = &unread{io.MultiReader(&read, r.Body), r.Body}
		return value, nil
	}
}

// unread is a body of which the beginning was read.
type unread struct {
	io.Reader
	body io.Closer
}

// Close closes the body.
func (u *unread) Close() error { return u.body.Close() }

// field finds a field of an object without regard to case, as the standard library does; it reads no further than that.
func field(d *json.Decoder, names []string) string {
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return ""
		}
		switch {
		case !strings.EqualFold(key, names[0]):
			if d.Decode(&json.RawMessage{}) != nil {
				return ""
			}
		case len(names) > 1:
			return field(d, names[1:])
		default:
			return text(d)
		}
	}
	return ""
}

// text reads a value as text; "" for lists and objects.
func text(d *json.Decoder) string {
	var value any
	if err := d.Decode(&value); err != nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	default:
		return ""
	}
}

// Relay answers requests that are for another agent.
type Relay interface {
	// Elsewhere answers the request at another agent if it is for one; done is false if it is for this one, and nothing was
	// written then. Errors, with nothing written either: NotLeader if there was no leader in time; Unavailable, Invalid.
	Elsewhere(w http.ResponseWriter, r *http.Request, at Where) (done bool, err error)
}

// Hop says how a request came from another agent, which its client called.
type Hop struct {
	From string // the agent's id
	Way  Way
}

// Way is how an agent reached another.
type Way string

// The ways.
const (
	FromServer Way = "server" // of the same region: the request goes no further
	FromRegion Way = "region" // of another region: the request may go on within this one
	FromNode   Way = "node"   // an agent without server: the request may go on
)

// RefusedHeader is "true" in an answer to a server that sent a request on, if that was not carried out because another server is
// the one to ask.
const RefusedHeader = "Drover-Relay-Refused"

// refuse says so of an error that means it. Runners and executions go from server to server while requests are on their way.
func refuse(w http.ResponseWriter, r *http.Request, at Where, err error) {
	hop, relayed := HopOf(r.Context())
	if relayed && hop.Way == FromServer && at.moves() && drover.CodeOf(err) == drover.NotLeader {
		w.Header().Set(RefusedHeader, "true")
	}
}

type hopKey struct{}

// WithHop marks the requests of a context as sent by another agent. It is for package relay alone: what other agents say
// is believed.
func WithHop(ctx context.Context, h Hop) context.Context { return context.WithValue(ctx, hopKey{}, h) }

// HopOf returns how the request came from another agent; false if it came from its client.
func HopOf(ctx context.Context) (Hop, bool) {
	h, ok := ctx.Value(hopKey{}).(Hop)
	return h, ok
}

// UnknownServer is the refusal of a request for a server that there is not, with Nomad's status and words.
func UnknownServer(name string) error {
	return &StatusError{Status: http.StatusInternalServerError, Err: fmt.Errorf("unknown Nomad server %s", name)}
}
