package variables

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/sealed"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// timed is a lock as the leader times it.
type timed struct {
	id   string
	lost time.Time // when it is lost unless it is renewed; others get it a delay later
	lock secrets.Lock
}

// Lock locks a variable, which is made if it is not there, or renews the times of a lock that the caller holds. Its items are stored if
// there are some. Errors: *secrets.Conflict while somebody else holds it; Forbidden, Invalid, Unavailable.
func (v *Variables) Lock(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.Variable, uint64, error) {
	if err := v.writes(who, w.Var); err != nil {
		return nil, 0, err
	}
	lock, err := lockOf(w.Var.Lock)
	if err != nil {
		return nil, 0, err
	}
	if len(w.Var.Items) > 0 {
		if err := checkItems(w.Var.Items); err != nil {
			return nil, 0, err
		}
	}
	if lock.ID == "" {
		lock.ID = v.deps.IDs.New()
	}
	out, index, err := v.change(ctx, who, command.LockVariable, w, lock)
	if err != nil {
		return nil, 0, err
	}
	v.time(w.Var.Namespace, w.Var.Path, lock)
	row := v.deps.Store.Snapshot().Variable(w.Var.Namespace, w.Var.Path)
	if row != nil && May(who, row.Namespace, row.Path, policy.ReadVariable) {
		if is, err := v.open(ctx, row); err == nil { // the lock is held, whether its items can be told or not
			out.Items = is.Items
		}
	}
	return withID(out, lock.ID), index, nil
}

// Renew has a lock hold for its whole time again. Nothing of it is stored. Errors: *secrets.Conflict if the caller does not hold it any
// more.
func (v *Variables) Renew(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.VariableMetadata, error) {
	if err := v.writes(who, w.Var); err != nil {
		return nil, err
	}
	if w.LockID() == "" {
		return nil, drover.Errorf(drover.Invalid, "Lock.ID: must be that of the lock that is renewed")
	}
	row := v.deps.Store.Snapshot().Variable(w.Var.Namespace, w.Var.Path)
	if row == nil || row.Lock == nil || row.Lock.ID != w.LockID() || v.isLost(row) {
		return nil, v.conflict(ctx, who, &secrets.SealedVariable{Namespace: w.Var.Namespace, Path: w.Var.Path}, row)
	}
	v.time(row.Namespace, row.Path, row.Lock)
	return &withID(&secrets.Variable{VariableMetadata: row.Meta()}, row.Lock.ID).VariableMetadata, nil
}

// Release ends a lock. Errors: *secrets.Conflict if the caller does not hold it.
func (v *Variables) Release(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.Variable, uint64, error) {
	if err := v.writes(who, w.Var); err != nil {
		return nil, 0, err
	}
	if w.LockID() == "" {
		return nil, 0, drover.Errorf(drover.Invalid, "Lock.ID: must be that of the lock that is released")
	}
	w.Var.Items = nil
	return v.change(ctx, who, command.UnlockVariable, w, nil)
}

func (v *Variables) writes(who *rights.Caller, x *secrets.Variable) error {
	if !May(who, x.Namespace, x.Path, policy.WriteVariable) {
		return denied()
	}
	return checkPath(x.Path)
}

func withID(v *secrets.Variable, id string) *secrets.Variable {
	if v.VariableMetadata.Lock != nil {
		v.VariableMetadata.Lock.ID = id
	}
	return v
}

// time starts a lock's time anew.
func (v *Variables) time(namespace, path string, l *secrets.Lock) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.locks[tables.JobKey(namespace, path)] = &timed{l.ID, v.deps.Clock.Now().Add(l.TTL), *l}
}

// isLost reports whether the lock's time has passed.
func (v *Variables) isLost(row *secrets.SealedVariable) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.locks[tables.JobKey(row.Namespace, row.Path)]
	return t != nil && t.id == row.Lock.ID && !v.deps.Clock.Now().Before(t.lost)
}

// Lead ends locks that were not renewed, and encrypts with the active key what is of a key that is rekeying, until term ends. Locks that
// another leader timed hold for their whole time again.
func (v *Variables) Lead(term context.Context) {
	v.mu.Lock()
	clear(v.locks)
	v.mu.Unlock()
	for term.Err() == nil {
		vars, keys := v.deps.Store.Watch(tables.Variables, ""), v.deps.Store.Watch(tables.RootKeys, "")
		methods := v.deps.Store.Watch(tables.AuthMethods, "")
		wait, err := v.expire(term)
		if err == nil {
			err = v.rekey(term)
		}
		if err != nil && term.Err() == nil {
			v.deps.Logger.Warn("keeping the variables", "error", err)
			wait = 5 * time.Second
			vars, keys, methods = nil, nil, nil
		}
		clock.Await(term, v.deps.Clock, wait, vars, keys, methods)
	}
}

// expire ends the locks that were lost a delay ago, and returns how long there is nothing to do.
func (v *Variables) expire(ctx context.Context) (time.Duration, error) {
	wait, now, held := clock.Forever, v.deps.Clock.Now(), map[string]bool{}
	for row := range v.deps.Store.Snapshot().Variables("*", "") {
		if row.Lock == nil {
			continue
		}
		key := tables.JobKey(row.Namespace, row.Path)
		held[key] = true
		v.mu.Lock()
		t := v.locks[key]
		if t == nil || t.id != row.Lock.ID {
			t = &timed{row.Lock.ID, now.Add(row.Lock.TTL), *row.Lock}
			v.locks[key] = t
		}
		end := t.lost.Add(t.lock.Delay)
		v.mu.Unlock()
		if end.After(now) {
			wait = min(wait, end.Sub(now))
			continue
		}
		_, _, err := v.propose(ctx, &command.ChangeVariable{
			Op: command.UnlockVariable, Var: &secrets.SealedVariable{Namespace: row.Namespace, Path: row.Path}, LockID: t.id, Time: now.UnixNano(),
		})
		if err != nil {
			return wait, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for key := range v.locks {
		if !held[key] && v.locks[key].lost.Before(now) { // one that was just made may not be in what was read
			delete(v.locks, key)
		}
	}
	return wait, nil
}

// rekey encrypts again what is of keys that are rekeying, and calls them deprecated once nothing is. What was encrypted with a key just
// before it was retired may come into the state only after that.
func (v *Variables) rekey(ctx context.Context) error {
	s := v.deps.Store.Snapshot()
	for key := range s.RootKeys() {
		if key.State != secrets.Rekeying && key.State != secrets.Deprecated {
			continue
		}
		left := false
		for row := range s.VariablesOfKey(key.KeyID) {
			left = true
			if err := v.reseal(ctx, row); err != nil {
				return err
			}
		}
		if left {
			return nil // the state has changed, which is looked at again
		}
		if key.State == secrets.Deprecated || sealed.With(s, key.KeyID) != "" { // auth methods are package access's, and watched
			continue
		}
		_, _, err := v.deps.Log.Propose(ctx, &command.SetRootKeyState{
			KeyID: key.KeyID, From: secrets.Rekeying, To: secrets.Deprecated, Time: v.deps.Clock.Now().UnixNano(),
		})
		if code := drover.CodeOf(err); err != nil && code != drover.NotFound && code != drover.Conflict {
			return err
		}
	}
	return nil
}

func (v *Variables) reseal(ctx context.Context, row *secrets.SealedVariable) error {
	plain, err := v.deps.Keyring.Open(ctx, row.KeyID, row.Data, purpose(row.Namespace, row.Path))
	if err != nil {
		return err
	}
	next := &secrets.SealedVariable{Namespace: row.Namespace, Path: row.Path}
	if next.KeyID, next.Data, err = v.deps.Keyring.Seal(ctx, plain, purpose(row.Namespace, row.Path)); err != nil {
		return err
	}
	_, _, err = v.propose(ctx, &command.ChangeVariable{ // somebody else may have written meanwhile: then it is not done
		Op: command.RekeyVariable, Var: next, Check: true, CheckIndex: row.ModifyIndex, Time: v.deps.Clock.Now().UnixNano(),
	})
	return err
}
