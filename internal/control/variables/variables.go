package variables

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
)

// Log commits commands; *raftlog.Log satisfies it.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Keyring encrypts and decrypts; *keyring.Keyring satisfies it.
type Keyring interface {
	Seal(ctx context.Context, plain []byte, purpose string) (keyID string, text []byte, err error)
	Open(ctx context.Context, keyID string, text []byte, purpose string) ([]byte, error)
}

// Deps is what Variables needs.
type Deps struct {
	Log     Log
	Store   *store.Store
	Keyring Keyring
	Clock   clock.Clock
	IDs     id.Source // used by several goroutines at once; random, since who knows a lock's id holds it
	Logger  *slog.Logger
}

// Variables has the use cases. Each asks what its caller may do.
type Variables struct {
	deps Deps

	mu    sync.Mutex // guards locks
	locks map[string]*timed
}

// New returns a Variables.
func New(deps Deps) *Variables { return &Variables{deps: deps, locks: map[string]*timed{}} }

// May reports whether the caller may do that with the variable.
func May(who *rights.Caller, namespace, path string, c policy.VariableCapability) bool {
	return who != nil && who.Variable(namespace, path, c)
}

// denied is Nomad's answer.
func denied() error { return drover.Errorf(drover.Forbidden, "Permission denied") }

func purpose(namespace, path string) string { return namespace + "\x00" + path }

// open decrypts the variable's items. Errors: those of the keyring.
func (v *Variables) open(ctx context.Context, row *secrets.SealedVariable) (*secrets.Variable, error) {
	out := &secrets.Variable{VariableMetadata: row.Meta()}
	if len(row.Data) == 0 {
		return out, nil
	}
	plain, err := v.deps.Keyring.Open(ctx, row.KeyID, row.Data, purpose(row.Namespace, row.Path))
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(plain, &out.Items) != nil {
		return nil, drover.Errorf(drover.Internal, "variable %s: what was encrypted are no items", row.Path)
	}
	return out, nil
}

// Get reads a variable. Errors: Forbidden; NotFound, in Nomad's words; Unavailable.
func (v *Variables) Get(ctx context.Context, who *rights.Caller, namespace, path string) (*secrets.Variable, error) {
	if !May(who, namespace, path, policy.ReadVariable) {
		return nil, denied()
	}
	row := v.deps.Store.Snapshot().Variable(namespace, path)
	if row == nil {
		return nil, drover.Errorf(drover.NotFound, "variable not found")
	}
	out, err := v.open(ctx, row)
	if err == nil && !May(who, namespace, path, policy.WriteVariable) {
		out.Lock = nil
	}
	return out, err
}

// List returns what is known of the variables of a namespace, or of all ("*"), whose paths begin with prefix, and that the caller may list.
func (v *Variables) List(who *rights.Caller, namespace, prefix string) []*secrets.VariableMetadata {
	out := []*secrets.VariableMetadata{}
	for row := range v.deps.Store.Snapshot().Variables(namespace, prefix) {
		if !May(who, row.Namespace, row.Path, policy.ListVariables) {
			continue
		}
		m := row.Meta()
		if !May(who, row.Namespace, row.Path, policy.WriteVariable) {
			m.Lock = nil
		}
		out = append(out, &m)
	}
	return out
}

// Put stores a variable. Errors: *secrets.Conflict; Forbidden, Invalid, Unavailable.
func (v *Variables) Put(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.Variable, uint64, error) {
	if !May(who, w.Var.Namespace, w.Var.Path, policy.WriteVariable) {
		return nil, 0, denied()
	}
	if err := checkPath(w.Var.Path); err != nil {
		return nil, 0, err
	}
	if err := checkItems(w.Var.Items); err != nil {
		return nil, 0, err
	}
	return v.change(ctx, who, command.PutVariable, w, nil)
}

// Delete deletes a variable; one that is not there is gone already. Errors: *secrets.Conflict; Forbidden, Invalid, Unavailable.
func (v *Variables) Delete(ctx context.Context, who *rights.Caller, w secrets.Write) (uint64, error) {
	if !May(who, w.Var.Namespace, w.Var.Path, policy.DestroyVariable) {
		return 0, denied()
	}
	if err := checkPath(w.Var.Path); err != nil {
		return 0, err
	}
	w.Var.Items = nil
	_, index, err := v.change(ctx, who, command.DeleteVariable, w, nil)
	return index, err
}

// change encrypts what is to be stored and commits it.
func (v *Variables) change(
	ctx context.Context, who *rights.Caller, op command.VariableOp, w secrets.Write, lock *secrets.Lock,
) (*secrets.Variable, uint64, error) {
	row := &secrets.SealedVariable{Namespace: w.Var.Namespace, Path: w.Var.Path, Lock: lock}
	c := &command.ChangeVariable{Op: op, Var: row, LockID: w.LockID(), Time: v.deps.Clock.Now().UnixNano()}
	if lock != nil {
		c.LockID = lock.ID
	}
	if w.Check != nil {
		c.Check, c.CheckIndex = true, *w.Check
	}
	if len(w.Var.Items) > 0 {
		plain, err := json.Marshal(w.Var.Items)
		if err != nil {
			return nil, 0, drover.Errorf(drover.Invalid, "Items: they cannot be encoded")
		}
		if row.KeyID, row.Data, err = v.deps.Keyring.Seal(ctx, plain, purpose(row.Namespace, row.Path)); err != nil {
			return nil, 0, err
		}
	}
	done, index, err := v.propose(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	if done.Conflict {
		return nil, 0, v.conflict(ctx, who, row, done.Var)
	}
	if done.Var == nil {
		return nil, index, nil
	}
	out := &secrets.Variable{VariableMetadata: done.Var.Meta(), Items: w.Var.Items}
	return out, index, nil
}

func (v *Variables) propose(ctx context.Context, c *command.ChangeVariable) (*command.VariableChange, uint64, error) {
	index, result, err := v.deps.Log.Propose(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	done, ok := result.(*command.VariableChange)
	if !ok {
		return nil, 0, drover.Errorf(drover.Internal, "the command ChangeVariable answered %T", result)
	}
	return done, index, nil
}

// conflict is the error with what is in the way, as far as the caller may read that.
func (v *Variables) conflict(ctx context.Context, who *rights.Caller, asked, is *secrets.SealedVariable) error {
	if is == nil {
		return &secrets.Conflict{Var: &secrets.Variable{VariableMetadata: secrets.VariableMetadata{Namespace: asked.Namespace, Path: asked.Path}}}
	}
	out := &secrets.Variable{VariableMetadata: is.Meta()}
	if May(who, is.Namespace, is.Path, policy.ReadVariable) {
		opened, err := v.open(ctx, is)
		if err != nil {
			return err
		}
		out = opened
	}
	if !May(who, is.Namespace, is.Path, policy.WriteVariable) {
		out.Lock = nil
	}
	return &secrets.Conflict{Var: out}
}
