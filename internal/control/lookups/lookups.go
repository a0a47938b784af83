package lookups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/service"
)

const (
	// longest is how long a call waits at most. Rights that were taken back count after it at the latest.
	longest = 5 * time.Minute
	// gather is how long a call goes on to wait once something has changed: changes come in crowds.
	gather = 20 * time.Millisecond
	// most is how many bytes of answers go into one call; what is left is answered by the next.
	most = 4 << 20
)

// gone is the version of no answer at all.
const gone = "gone"

// Variables reads variables; *variables.Variables is one.
type Variables interface {
	Get(ctx context.Context, who *rights.Caller, namespace, path string) (*secrets.Variable, error)
	List(who *rights.Caller, namespace, prefix string) []*secrets.VariableMetadata
}

// Deps is what Lookups needs.
type Deps struct {
	Store     *store.Store
	Variables Variables
	// Rights says what a task may do.
	Rights func(alloc *drover.Allocation, task string) (*rights.Caller, error)
	Clock  clock.Clock
}

// Lookups answers. It is for any number of goroutines.
type Lookups struct{ deps Deps }

// New returns a Lookups.
func New(deps Deps) *Lookups { return &Lookups{deps} }

// Look is exchange.Lookups with this server's state. Unknown allocations are reported, too, as the caller's state may be old.
func (l *Lookups) Look(
	ctx context.Context, nodeID string, asked []exchange.Lookup, maxWait time.Duration,
) (found []exchange.Found, unknown bool, err error) {
	if len(asked) > exchange.MaxLookups {
		return nil, false, drover.Errorf(drover.Invalid, "%d questions at once: ask %d at most", len(asked), exchange.MaxLookups)
	}
	ctx, cancel := l.deps.Clock.WithTimeout(ctx, min(maxWait, longest))
	defer cancel()
	for {
		changed := l.watch(asked)
		found, unknown, err = l.answer(ctx, nodeID, asked)
		if err != nil || len(found) > 0 {
			return found, unknown, err
		}
		if !clock.Await(ctx, l.deps.Clock, clock.Forever, changed...) {
			return nil, false, nil
		}
		clock.Sleep(ctx, l.deps.Clock, gather)
	}
}

// watch returns what closes when an answer may be another one.
func (l *Lookups) watch(asked []exchange.Lookup) []<-chan struct{} {
	on := map[string]bool{tables.ACLPolicies: true}
	for _, a := range asked {
		switch a.Question.Kind {
		case exchange.AskVariable, exchange.AskVariables:
			on[tables.Variables] = true
		default:
			on[tables.Services] = true
		}
	}
	out := make([]<-chan struct{}, 0, len(on))
	for table := range on {
		out = append(out, l.deps.Store.Watch(table, ""))
	}
	return out
}

// answer answers what has another answer than the one that was seen.
func (l *Lookups) answer(ctx context.Context, nodeID string, asked []exchange.Lookup) (found []exchange.Found, unknown bool, err error) {
	s, size := l.deps.Store.Snapshot(), 0
	callers := map[string]*rights.Caller{} // many templates are of the same task
	for at, a := range asked {
		alloc := s.Allocation(a.AllocID)
		if alloc == nil || alloc.NodeID != nodeID || alloc.ClientTerminal() { // it is not said whether another node has it
			unknown = unknown || alloc == nil
			if a.Seen != gone {
				found = append(found, exchange.Found{At: at, Version: gone, Gone: true})
			}
			continue
		}
		who := callers[a.AllocID+"/"+a.Task]
		if who == nil {
			if who, err = l.deps.Rights(alloc, a.Task); err != nil {
				return nil, false, fmt.Errorf("reading the rights of task %q: %w", a.Task, err)
			}
			callers[a.AllocID+"/"+a.Task] = who
		}
		f, err := l.one(ctx, s, who, a)
		if err != nil {
			return nil, false, err
		}
		if f.Version == a.Seen {
			continue
		}
		f.At = at
		found = append(found, f)
		if size += len(f.Data); size > most {
			break
		}
	}
	return found, unknown, nil
}

// one answers a question. A variable that was seen is not read again.
func (l *Lookups) one(ctx context.Context, s *store.Snapshot, who *rights.Caller, a exchange.Lookup) (f exchange.Found, err error) {
	q := a.Question
	switch q.Kind {
	case exchange.AskVariable:
		return l.variable(ctx, s, who, a)
	case exchange.AskVariables:
		return listed(l.deps.Variables.List(who, q.Namespace, q.Name))
	case exchange.AskService, exchange.AskServices:
		if !who.Namespace(q.Namespace, policy.ReadServices) {
			return refused()
		}
		list := []*service.Registration{}
		for r := range s.Registrations(q.Namespace, q.Name) {
			plain := *r
			// What changes with each report of the allocation is of no interest to templates.
			plain.CreateIndex, plain.ModifyIndex, plain.Unhealthy = 0, 0, false
			list = append(list, &plain)
		}
		if q.Kind == exchange.AskServices {
			return listed(inShort(list))
		}
		return listed(list)
	default:
		return f, drover.Errorf(drover.NotImplemented, "this server does not know what is asked: %q", q.Kind)
	}
}

func refused() (exchange.Found, error) {
	return exchange.Found{Version: "refused", Refused: "Permission denied"}, nil
}

func (l *Lookups) variable(ctx context.Context, s *store.Snapshot, who *rights.Caller, a exchange.Lookup) (f exchange.Found, err error) {
	q := a.Question
	if !who.Variable(q.Namespace, q.Name, policy.ReadVariable) {
		return refused()
	}
	row := s.Variable(q.Namespace, q.Name)
	if row == nil {
		return exchange.Found{Version: "none"}, nil
	}
	version := func(m secrets.VariableMetadata) string { return fmt.Sprintf("%d/%d", m.CreateIndex, m.ModifyIndex) }
	if f.Version = version(row.Meta()); f.Version == a.Seen {
		return f, nil
	}
	v, err := l.deps.Variables.Get(ctx, who, q.Namespace, q.Name)
	switch {
	case drover.CodeOf(err) == drover.NotFound: // meanwhile
		return exchange.Found{Version: "none"}, nil
	case err != nil:
		return f, err
	}
	v.Lock = nil
	f.Version = version(v.VariableMetadata)
	f.Data, err = json.Marshal(v)
	return f, err
}

// listed answers with a list; its version is its digest.
func listed(list any) (f exchange.Found, err error) {
	if f.Data, err = json.Marshal(list); err != nil {
		return f, err
	}
	sum := sha256.Sum256(f.Data)
	f.Version = hex.EncodeToString(sum[:8])
	return f, nil
}

// inShort are the names and tags of registrations.
func inShort(list []*service.Registration) []exchange.ServiceTags {
	tags := map[string]map[string]bool{}
	for _, r := range list {
		if tags[r.ServiceName] == nil {
			tags[r.ServiceName] = map[string]bool{}
		}
		for _, t := range r.Tags {
			tags[r.ServiceName][t] = true
		}
	}
	out := []exchange.ServiceTags{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, exchange.ServiceTags{ServiceName: name, Tags: append([]string{}, slices.Sorted(maps.Keys(tags[name]))...)})
	}
	return out
}
