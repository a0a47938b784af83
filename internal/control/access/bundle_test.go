package access

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rights"
)

// memoryLog applies at once.
type memoryLog struct {
	mu    sync.Mutex
	fsm   *fsm.FSM
	index uint64
	texts bytes.Buffer // what was written
}

func (l *memoryLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	l.texts.Write(data)
	result, err := l.fsm.Apply(l.index, data)
	return l.index, result, err
}

// at is a clock that stands still.
type at struct {
	clock.Wall
	mu  sync.Mutex
	now time.Time
}

func (c *at) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *at) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type bundle struct {
	*Access
	*Resolver
	t     testing.TB
	log   *memoryLog
	clock *at
	reset ResetFile
	root  *rights.Caller
}

const apiToken = "of-the-configuration"

func setup(t testing.TB) *bundle {
	st := store.New()
	log := &memoryLog{fsm: fsm.New(st, nil)}
	c := &at{now: time.Unix(1e9, 0)}
	reset := ResetFile(filepath.Join(t.TempDir(), "acl-bootstrap-reset"))
	b := &bundle{
		Access:   New(Deps{Log: log, Store: st, Clock: c, IDs: id.Random{}, Reset: reset}),
		Resolver: NewResolver(st, c, apiToken, 0), t: t, log: log, clock: c, reset: reset,
	}
	var err error
	b.root, err = b.Resolve(apiToken)
	require.NoError(t, err)
	return b
}

func (b *bundle) policy(name, rules string) {
	b.t.Helper()
	_, err := b.PutPolicy(b.t.Context(), b.root, &acl.Policy{Name: name, Rules: rules})
	require.NoError(b.t, err)
}

func (b *bundle) role(name string, policies ...string) *acl.Role {
	b.t.Helper()
	r := &acl.Role{Name: name}
	for _, p := range policies {
		r.Policies = append(r.Policies, &acl.RolePolicy{Name: p})
	}
	r, _, err := b.PutRole(b.t.Context(), b.root, r)
	require.NoError(b.t, err)
	return r
}

func (b *bundle) token(k *acl.Token) *acl.Token {
	b.t.Helper()
	made, index, err := b.CreateToken(b.t.Context(), b.root, k)
	require.NoError(b.t, err)
	require.Equal(b.t, index, made.ModifyIndex)
	return made
}

func (b *bundle) client(policies ...string) *acl.Token {
	b.t.Helper()
	return b.token(&acl.Token{Type: acl.ClientToken, Policies: policies})
}

func (b *bundle) who(secret acl.Secret) *rights.Caller {
	b.t.Helper()
	who, err := b.Resolve(secret)
	require.NoError(b.t, err)
	return who
}

// fails checks an error's code and words.
func fails(t testing.TB, err error, code drover.Code, text string) {
	t.Helper()
	require.ErrorContains(t, err, text)
	require.Equal(t, code, drover.CodeOf(err), err.Error())
}
