package variables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/keyring"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
)

// memoryLog applies at once, and remembers what was written.
type memoryLog struct {
	mu    sync.Mutex
	fsm   *fsm.FSM
	index uint64
	texts bytes.Buffer
	// written are the indexes at which a variable was stored.
	written map[uint64]bool
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
	if done, ok := result.(*command.VariableChange); ok && err == nil && !done.Conflict {
		l.written[l.index] = true
	}
	return l.index, result, err
}

type bundle struct {
	*Variables
	keys   *keyring.Keyring
	log    *memoryLog
	store  *store.Store
	logged *bytes.Buffer
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{store: store.New(), logged: &bytes.Buffer{}}
	b.log = &memoryLog{fsm: fsm.New(b.store, nil), written: map[uint64]bool{}}
	logger := slog.New(slog.NewTextHandler(b.logged, nil))
	b.keys = keyring.New(keyring.Config{}, keyring.Deps{
		Log: b.log, Store: b.store, Clock: clock.Wall{}, IDs: id.Random{}, Wrappers: []keyring.Wrapper{keyring.NewFiles("", "", nil)},
		Wraps: 1, Logger: logger,
	})
	_, _, err := b.keys.Rotate(t.Context(), secrets.Rotation{})
	require.NoError(t, err)
	b.Variables = New(Deps{Log: b.log, Store: b.store, Keyring: b.keys, Clock: clock.Wall{}, IDs: id.Random{}, Logger: logger})
	return b
}

// who is a caller with the policy; "" may do everything.
func who(t *testing.T, text string) *rights.Caller {
	t.Helper()
	if text == "" {
		return &rights.Caller{Token: &acl.Token{}, Rights: rights.Management()}
	}
	p, err := policy.Parse(text)
	require.NoError(t, err)
	return &rights.Caller{Token: &acl.Token{}, Rights: rights.Compile(p)}
}

func wish(path, value string, check ...uint64) secrets.Write {
	v := &secrets.Variable{VariableMetadata: secrets.VariableMetadata{Namespace: "default", Path: path}}
	if value != "" {
		v.Items = map[string]string{"k": value}
	}
	w := secrets.Write{Var: v}
	if len(check) > 0 {
		w.Check = &check[0]
	}
	return w
}

const secret = "correct-horse-battery-staple"

// TestNothingSecretIsWritten looks for the value in the log, the snapshot, the program's log and errors, and reads it back.
func TestNothingSecretIsWritten(t *testing.T) {
	t.Parallel()
	b, root := setup(t), who(t, "")
	_, _, err := b.Put(t.Context(), root, wish("a/b", secret))
	require.NoError(t, err)
	_, _, err = b.Put(t.Context(), root, wish("a/b", secret+secret, 0))
	require.Error(t, err)
	require.NotContains(t, err.Error(), secret)
	_, _, err = b.Put(t.Context(), root, wish("a//", secret))
	require.NotContains(t, err.Error(), secret)
	var image bytes.Buffer
	require.NoError(t, b.log.fsm.Snapshot(&image))
	require.NotContains(t, image.String()+b.log.texts.String()+b.logged.String(), secret)
	restored := store.New()
	require.NoError(t, fsm.New(restored, nil).Restore(&image))
	require.Equal(t, b.store.Snapshot().Variable("default", "a/b"), restored.Snapshot().Variable("default", "a/b"))
	v, err := b.Get(t.Context(), root, "default", "a/b")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": secret}, v.Items)
}

func TestCheckAndSet(t *testing.T) {
	t.Parallel()
	b, root := setup(t), who(t, "")
	first, _, err := b.Put(t.Context(), root, wish("a", "1", 0))
	require.NoError(t, err)
	second, index, err := b.Put(t.Context(), root, wish("a", "2", first.ModifyIndex))
	require.NoError(t, err)
	require.Equal(t, index, second.ModifyIndex)
	require.Equal(t, first.CreateIndex, second.CreateIndex)
	var conflict *secrets.Conflict
	_, _, err = b.Put(t.Context(), root, wish("a", "3", first.ModifyIndex))
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, second.ModifyIndex, conflict.Var.ModifyIndex)
	require.Equal(t, map[string]string{"k": "2"}, conflict.Var.Items)
	_, err = b.Delete(t.Context(), root, wish("a", "", first.ModifyIndex))
	require.ErrorAs(t, err, &conflict)
	_, err = b.Delete(t.Context(), root, wish("a", "", second.ModifyIndex))
	require.NoError(t, err)
	_, err = b.Get(t.Context(), root, "default", "a")
	require.EqualError(t, err, "variable not found")
	_, _, err = b.Put(t.Context(), root, wish("a", "4", 7))
	require.ErrorAs(t, err, &conflict)
	require.Zero(t, conflict.Var.ModifyIndex)
}

// TestOneOfManyWins: of writers that read the same index one writes, each time.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	b, root := setup(t), who(t, "")
	var wait sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		wait.Go(func() {
			for done := 0; done < 25; {
				at := uint64(0)
				if v, err := b.Get(t.Context(), root, "default", "n"); err == nil {
					at = v.ModifyIndex
				}
				if _, _, err := b.Put(t.Context(), root, wish("n", "x", at)); err == nil {
					mu.Lock()
					won++
					mu.Unlock()
					done++
				}
			}
		})
	}
	wait.Wait()
	require.Equal(t, 200, won)
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	require.Len(t, b.log.written, 200, "each of them at another index, and applied once")
}

func TestRightsDecide(t *testing.T) {
	t.Parallel()
	b, root := setup(t), who(t, "")
	for _, path := range []string{"team/a", "team/secret/x", "other"} {
		_, _, err := b.Put(t.Context(), root, wish(path, "v"))
		require.NoError(t, err)
	}
	reader := who(t, `namespace "default" {
  variables {
    path "team/*" { capabilities = ["read"] }
    path "team/secret/*" { capabilities = ["deny"] }
  }
}`)
	writer := who(t, `namespace "default" {
  variables {
    path "team/*" { capabilities = ["write"] }
  }
}`)
	list := b.List(reader, "*", "")
	require.Len(t, list, 1)
	require.Equal(t, "team/a", list[0].Path)
	_, err := b.Get(t.Context(), reader, "default", "team/a")
	require.NoError(t, err)
	for _, path := range []string{"team/secret/x", "other", "nothing"} {
		_, err := b.Get(t.Context(), reader, "default", path)
		require.EqualError(t, err, "Permission denied")
	}
	_, _, err = b.Put(t.Context(), reader, wish("team/a", "w"))
	require.EqualError(t, err, "Permission denied")
	_, err = b.Delete(t.Context(), writer, wish("team/a", ""))
	require.EqualError(t, err, "Permission denied")
	_, err = b.Get(t.Context(), nil, "default", "team/a")
	require.EqualError(t, err, "Permission denied")
	var conflict *secrets.Conflict
	_, _, err = b.Put(t.Context(), writer, wish("team/a", "w", 0))
	require.True(t, errors.As(err, &conflict))
	require.Empty(t, conflict.Var.Items, "who may not read it is not told")
	require.NotZero(t, conflict.Var.ModifyIndex)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	b, root := setup(t), who(t, "")
	for path, want := range map[string]string{
		"": "missing required Path", "a b": "invalid path", "/a": "invalid path", strings.Repeat("a", 129): "invalid path",
		"nomad": "only nomad/jobs", "nomad/x": "only nomad/jobs",
	} {
		_, _, err := b.Put(t.Context(), root, wish(path, "v"))
		require.ErrorContains(t, err, want)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	_, _, err := b.Put(t.Context(), root, wish("a", ""))
	require.EqualError(t, err, "variable missing required Items object")
	_, _, err = b.Put(t.Context(), root, wish("a", strings.Repeat("x", 64<<10)))
	require.ErrorContains(t, err, "limited to 64KiB")
	w := wish("a", "v")
	w.Var.Namespace = "none"
	_, _, err = b.Put(t.Context(), root, w)
	require.ErrorContains(t, err, `namespace "none" does not exist`)
	w = wish("a", "")
	w.Var.Lock = &secrets.VariableLock{TTL: "1s"}
	_, _, err = b.Lock(t.Context(), root, w)
	require.ErrorContains(t, err, "Lock.TTL")
}

// TestLocks: a lock holds until it is released, or its time and delay have passed without being renewed.
// Variables of all namespaces of a quota have so many bytes together; what they take is given back when they go.
func TestAQuotaBoundsBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []command.Command{
		&command.UpsertQuotas{Quotas: []*tenancy.QuotaSpec{{Name: "q", Here: "global", Limits: []*tenancy.QuotaLimit{{
			Region: "global", VariablesLimit: new(1),
		}}}}},
		&command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: "default", Quota: "q"}, {Name: "team", Quota: "q"}}},
	} {
		_, _, err := b.log.Propose(t.Context(), c)
		require.NoError(t, err)
	}
	root := who(t, "")
	big := func(path, namespace string) secrets.Write {
		w := wish(path, strings.Repeat("x", 60<<10))
		w.Var.Namespace = namespace
		return w
	}
	put := func(w secrets.Write) error {
		_, _, err := b.Put(t.Context(), root, w)
		return err
	}
	n := 0
	for ; n < 20 && put(big(fmt.Sprint("a", n), []string{"default", "team"}[n%2])) == nil; n++ {
	}
	require.Equal(t, 17, n, "17 * 60 KiB are within 1 MiB")
	err := put(big("more", "team"))
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
	require.ErrorContains(t, err, `variable more of namespace "team": quota "q": variables exhausted (`)
	require.NoError(t, put(big("a0", "default")), "it grows by nothing")
	require.NoError(t, put(wish("a0", "small")))
	require.NoError(t, put(big("more", "team")))
}

func TestLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, root := setup(t), who(t, "")
		ctx, stop := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { b.Lead(ctx) })
		held := func() secrets.Write {
			w := wish("l", "")
			w.Var.Lock = &secrets.VariableLock{TTL: "10s", LockDelay: "5s"}
			return w
		}
		v, _, err := b.Lock(ctx, root, held())
		require.NoError(t, err)
		mine := held()
		mine.Var.Lock.ID = v.Lock.ID
		require.NotEmpty(t, v.Lock.ID)
		var conflict *secrets.Conflict
		_, _, err = b.Lock(ctx, root, held())
		require.ErrorAs(t, err, &conflict)
		require.Empty(t, conflict.Var.Lock.ID, "who does not hold it is not told its id")
		_, _, err = b.Put(ctx, root, wish("l", "x"))
		require.ErrorAs(t, err, &conflict)
		for range 3 {
			time.Sleep(9 * time.Second)
			_, err = b.Renew(ctx, root, mine)
			require.NoError(t, err)
		}
		time.Sleep(11 * time.Second)
		_, err = b.Renew(ctx, root, mine)
		require.ErrorAs(t, err, &conflict, "it is lost")
		_, _, err = b.Lock(ctx, root, held())
		require.ErrorAs(t, err, &conflict, "nobody gets it before its delay")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		next, _, err := b.Lock(ctx, root, held())
		require.NoError(t, err)
		require.NotEqual(t, v.Lock.ID, next.Lock.ID)
		_, _, err = b.Release(ctx, root, mine)
		require.ErrorAs(t, err, &conflict)
		mine.Var.Lock.ID = next.Lock.ID
		out, _, err := b.Release(ctx, root, mine)
		require.NoError(t, err)
		require.Nil(t, out.Lock)
		stop()
		loop.Wait()
	})
}

// TestAFullRotationEncryptsAgain: then the old keys are of no use, and readers see the same variable.
func TestAFullRotationEncryptsAgain(t *testing.T) {
	t.Parallel()
	b, root := setup(t), who(t, "")
	old := b.keys.Keys()[0].KeyID
	stored, _, err := b.Put(t.Context(), root, wish("a", secret))
	require.NoError(t, err)
	_, _, err = b.keys.Rotate(t.Context(), secrets.Rotation{Full: true})
	require.NoError(t, err)
	_, err = b.keys.Remove(t.Context(), old, false)
	require.ErrorContains(t, err, "variable a of namespace default is encrypted with it")
	require.NoError(t, b.rekey(t.Context()))
	require.NoError(t, b.rekey(t.Context()))
	require.Equal(t, secrets.Deprecated, b.store.Snapshot().RootKey(old).State)
	_, err = b.keys.Remove(t.Context(), old, false)
	require.NoError(t, err)
	v, err := b.Get(t.Context(), root, "default", "a")
	require.NoError(t, err)
	require.Equal(t, secret, v.Items["k"])
	require.Equal(t, stored.ModifyIndex, v.ModifyIndex)
}
