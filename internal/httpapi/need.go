package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// needKind is a kind of needs.
type needKind uint8

const (
	undeclared needKind = iota // a mistake, which a test finds
	needNothing
	needCaller
	needCapability
	needLevel
	needOperator
	needPool
	needManagement
	needDepends
)

// scope is the namespace in which capabilities are needed.
type scope uint8

const (
	inAsked   scope = iota // that of the query; "*" is any one
	inDefault              // drover.DefaultNamespace
	ofObject               // the object's, which its handler knows: in some one at least
	ofPath                 // that of what the request's path names
)

// Need is the right that a route's requests need of who sends them. The zero Need says nothing: it lets management through alone.
type Need struct {
	kind         needKind
	scope        scope
	late         bool                         // the token may come after the head of the request
	knows        bool                         // the handler asks for the caller
	asking       []string                     // the handler asks for the caller of requests that have one of these headers
	namespace    func(r *http.Request) string // of ofPath
	capabilities []policy.Capability
	part         policy.Part
	level        policy.Level
	operator     policy.OperatorCapability
	pool         policy.PoolCapability
	shows        string // what of the answer the handler leaves to whom
	group        string // of the routes that the configuration opens or closes
	of           func(r *http.Request) Need
	cases        []Case
}

// Needs that depend on nothing but the route.
var (
	Nothing    = Need{kind: needNothing}    // no token is looked at, not even a wrong one
	Anybody    = Need{kind: needCaller}     // who shows no token is somebody, too; who shows one that is not known is refused
	Management = Need{kind: needManagement} // the right to do everything
)

// Filtered is Anybody where the handler shows each caller less or more; shows says what.
func Filtered(shows string) Need { return Need{kind: needCaller, shows: shows} }

// InNamespace needs all of the capabilities in the namespace that the query names. Of "*" they are needed in some one, and the handler
// filters what is in it.
func InNamespace(all ...policy.Capability) Need {
	return Need{kind: needCapability, scope: inAsked, capabilities: all}
}

// InDefault needs all of the capabilities in the namespace default.
func InDefault(all ...policy.Capability) Need {
	return Need{kind: needCapability, scope: inDefault, capabilities: all}
}

// Knowing has the handler know its caller (CallerOf) where the need would be decided without.
func (n Need) Knowing() Need {
	n.knows = true
	return n
}

// KnowingWith has the handler know its caller (CallerOf) of requests with one of the headers, where the need would be decided without.
func (n Need) KnowingWith(headers ...string) Need {
	n.asking = headers
	return n
}

// asks reports whether the handler asks for the caller of the request.
func (n Need) asks(r *http.Request) bool {
	return n.knows || slices.ContainsFunc(n.asking, func(header string) bool { return r.Header.Get(header) != "" })
}

// InNamespaceOf needs all of the capabilities in the namespace that namespace finds in a request's path or query.
func InNamespaceOf(namespace func(r *http.Request) string, all ...policy.Capability) Need {
	return Need{kind: needCapability, scope: ofPath, namespace: namespace, capabilities: all}
}

// OfRunner needs all of the capabilities in the namespace of the runner that the path names: its id tells that. An id with another
// namespace than its runner's is nobody's.
func OfRunner(all ...policy.Capability) Need {
	return InNamespaceOf(func(r *http.Request) string { return execution.NamespaceOf(r.PathValue("runner")) }, all...)
}

// OfObject needs all of the capabilities in the namespace of what the request is about. Its handler decides that with Allow or May; who has
// one of them nowhere is refused before.
func OfObject(all ...policy.Capability) Need {
	return Need{kind: needCapability, scope: ofObject, capabilities: all}
}

// Level needs a level of a part of the cluster.
func Level(part policy.Part, level policy.Level) Need {
	return Need{kind: needLevel, part: part, level: level}
}

// OfPool needs a capability of the node pool that the path names; where it names none the handler, which knows it, decides.
func OfPool(c policy.PoolCapability) Need { return Need{kind: needPool, pool: c} }

// Operator needs a capability of operators.
func Operator(c policy.OperatorCapability) Need { return Need{kind: needOperator, operator: c} }

// Case is what a Need that depends on the request is for some of them.
type Case struct {
	Path string // methods and path, as people write them
	Need Need
}

// Depends needs what of says of a request: of its path or query alone, as its body was not read. Of may return the zero Need for what
// there is not: its handler answers that to everybody. The cases are all that of returns, for people.
func Depends(of func(r *http.Request) Need, cases ...Case) Need {
	return Need{kind: needDepends, of: of, cases: cases}
}

// InHandshake returns the same need of a route whose token may come behind the request's head. Its handler calls Identify.
func (n Need) InHandshake() Need {
	n.late = true
	return n
}

// OpenAs returns the same need of a route that needs nothing where the configuration opens its group, one of acl.OpenGroups.
func (n Need) OpenAs(group string) Need {
	n.group = group
	return n
}

// where returns what the need is where the groups are open.
func (n Need) where(open []string) Need {
	if n.group != "" && slices.Contains(open, n.group) {
		return Nothing
	}
	return n
}

// Showing returns the same need with words about what of the answer the handler leaves to whom.
func (n Need) Showing(what string) Need {
	n.shows = what
	return n
}

// Said reports whether the need is one.
func (n Need) Said() bool { return n.kind != undeclared }

// IsOpen reports whether no token is looked at where the configuration says nothing about it.
func (n Need) IsOpen() bool { return n.kind == needNothing || acl.IsOpenByDefault(n.group) }

// Group is the group of acl.OpenGroups that the route is of; "" if it is of none.
func (n Need) Group() string { return n.group }

// Varies reports whether the need depends on the request.
func (n Need) Varies() bool { return n.kind == needDepends }

// Cases are what a need that depends on the request is for which; nil of others.
func (n Need) Cases() []Case { return n.cases }

// String says the need for people, in the words of the policy language: "read-job in the namespace asked for", "node:read".
func (n Need) String() string {
	text := n.words()
	switch {
	case n.group != "" && n.IsOpen():
		text = fmt.Sprintf("nothing; %s where `open_routes` lacks %q", text, n.group)
	case n.group != "":
		text = fmt.Sprintf("%s; nothing where `open_routes` has %q", text, n.group)
	}
	if n.shows != "" {
		text += "; shows " + n.shows
	}
	return text
}

func (n Need) words() string {
	switch n.kind {
	case needNothing:
		return "nothing"
	case needCaller:
		return "anybody"
	case needCapability:
		names := make([]string, len(n.capabilities))
		for i, c := range n.capabilities {
			names[i] = c.String()
		}
		return strings.Join(names, " and ") + [...]string{
			inAsked: " in the namespace asked for", inDefault: " in namespace default", ofObject: " in the object's namespace",
			ofPath: " in the namespace of what is named",
		}[n.scope]
	case needLevel:
		return n.part.String() + ":" + n.level.String()
	case needOperator:
		return n.operator.String() + " of operators"
	case needPool:
		return n.pool.String() + " of the node pool"
	case needManagement:
		return "management"
	case needDepends:
		return "what the path says"
	default:
		return "undeclared"
	}
}

// MetBy reports whether the caller meets the need in some namespace or node pool; false of one that depends on the request.
func (n Need) MetBy(c *rights.Caller) bool {
	switch n.kind {
	case needCapability:
		n.scope = ofObject
	case needPool:
		return c.NodePool(drover.DefaultNodePool, n.pool)
	default:
	}
	return n.IsOpen() || n.kind != needDepends && n.met(c, &http.Request{})
}

// met reports whether the caller has the right, as far as it can be said before the handler.
func (n *Need) met(c *rights.Caller, r *http.Request) bool {
	switch n.kind {
	case needNothing, needCaller:
		return true
	case needCapability:
		namespace := rights.AnyNamespace
		switch n.scope {
		case inAsked:
			namespace = AskedNamespace(r)
		case inDefault:
			namespace = drover.DefaultNamespace
		case ofPath:
			namespace = n.namespace(r)
		case ofObject:
		}
		for _, capability := range n.capabilities {
			if !c.Namespace(namespace, capability) {
				return false
			}
		}
		return true
	case needLevel:
		return c.Part(n.part, n.level)
	case needOperator:
		return c.Operator(n.operator)
	case needPool:
		name := r.PathValue("name")
		return name == "" || c.NodePool(name, n.pool)
	default:
		return c.Management()
	}
}

// fixed reports whether handlers need not know who calls: nothing of the answer depends on it.
func (n *Need) fixed() bool {
	ofOne := n.kind == needCapability && (n.scope == inDefault || n.scope == ofPath)
	return n.shows == "" && (n.kind == needNothing || ofOne || n.kind == needLevel ||
		n.kind == needOperator)
}

// AskedNamespace is the namespace that a request's query asks for.
func AskedNamespace(r *http.Request) string {
	if r.URL.RawQuery != "" {
		if ns := r.URL.Query().Get("namespace"); ns != "" {
			return ns
		}
	}
	return drover.DefaultNamespace
}
