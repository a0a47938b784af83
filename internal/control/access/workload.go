package access

import (
	"crypto/sha256"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/rights"
)

// trusted is for how long a token whose signature was verified is not verified again: a key that was removed counts no longer then.
const trusted = 10 * time.Second

// verified is a token whose signature is right.
type verified struct {
	claims *claims.Claims
	until  time.Time
}

// Believe has the resolver take identities of tasks that one of the keys signed. It is called before the first Resolve.
func (r *Resolver) Believe(keys func() []jose.JSONWebKey) { r.keys = keys }

// Workload returns the task that has the identity, with what it may do: what every workload may, and what the policies say that are bound
// to its job. Errors: ErrNoToken for what is no identity, is none for this cluster, or whose allocation has ended; ErrExpired.
func (r *Resolver) Workload(token string) (*rights.Caller, error) {
	if r.keys == nil {
		return nil, ErrNoToken
	}
	return r.workload(sha256.Sum256([]byte(token)), token)
}

func (r *Resolver) workload(key [sha256.Size]byte, token string) (*rights.Caller, error) {
	c, err := r.read(key, token)
	if err != nil {
		return nil, ErrNoToken
	}
	if c.Check(r.clock.Now(), r.leeway) != nil {
		return nil, ErrExpired
	}
	s := r.store.Snapshot()
	alloc := s.Allocation(c.AllocationID)
	if !c.IsWorkload() || alloc == nil || alloc.ClientTerminal() || alloc.Namespace != c.Namespace {
		return nil, ErrNoToken
	}
	return r.task(s, alloc, c.JobID, c.Task, c.Subject)
}

// Task returns what an allocation's task may do, whose identity it need not show: who asks knows which task it is. Errors: Internal for
// a policy whose rules this program cannot read.
func (r *Resolver) Task(alloc *drover.Allocation, task string) (*rights.Caller, error) {
	return r.task(r.store.Snapshot(), alloc, claims.Job(alloc), task, alloc.ID+"/"+task)
}

func (r *Resolver) task(s *store.Snapshot, alloc *drover.Allocation, job, task, name string) (*rights.Caller, error) {
	of, err := r.rights(s.History(), policiesOfTask(s, alloc, job, task))
	if err != nil {
		return nil, err
	}
	return &rights.Caller{
		Token:  &acl.Token{AccessorID: "workload/" + alloc.ID + "/" + task, Name: name, Type: acl.ClientToken},
		Rights: of.With(rights.OwnOf(alloc.Namespace, job, alloc.TaskGroup, task)),
	}, nil
}

// read verifies the token's signature, unless that was done a moment ago.
func (r *Resolver) read(key [sha256.Size]byte, token string) (*claims.Claims, error) {
	now := r.clock.Now()
	r.mu.Lock()
	have, known := r.verified[key]
	r.mu.Unlock()
	if known && now.Before(have.until) {
		return have.claims, nil
	}
	c, err := claims.Verify(token, r.keys())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	put(r.verified, maxResolved, key, verified{c, now.Add(trusted)})
	return c, nil
}

// policiesOfTask returns the policies that are bound to the job as a whole, to the task's group, or to the task.
func policiesOfTask(s *store.Snapshot, alloc *drover.Allocation, job, task string) (out []*acl.Policy) {
	for p := range s.ACLPoliciesOfJob(alloc.Namespace, job) {
		if j := p.JobACL; (j.Group == "" || j.Group == alloc.TaskGroup) && (j.Task == "" || j.Task == task) {
			out = append(out, p)
		}
	}
	return out
}
