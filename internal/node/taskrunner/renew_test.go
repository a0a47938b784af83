package taskrunner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/workload"
)

// signer numbers its tokens.
type signer struct {
	mu    sync.Mutex
	calls int
	err   error
}

func (s *signer) Sign(_ context.Context, wanted []exchange.IdentityRequest) ([]exchange.SignedIdentity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.calls++
	out := make([]exchange.SignedIdentity, len(wanted))
	for i, w := range wanted {
		now := time.Now()
		out[i] = exchange.SignedIdentity{Token: fmt.Sprintf("%s-%d", w.Name, s.calls), Made: now}
		if w.Name != "" {
			out[i].Expires = now.Add(time.Hour)
		}
	}
	return out, nil
}

// signed is how often it was asked with success.
func (s *signer) signed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// withIdentities has the bundle's task have tokens.
func (b *bundle) withIdentities(s *signer, list ...*workload.Identity) {
	require.NoError(b.t, b.cfg.Dir.Build())
	b.shared.Signer, b.shared.Hooks = s, hook.Standard(hook.Settings{Signer: s})
	b.cfg.Task.Identity, b.cfg.Task.Identities = &workload.Identity{Env: true, File: true}, list
}

func (b *bundle) token(path string) string {
	data, err := os.ReadFile(filepath.Join(b.cfg.Dir.Task("main").Task, path))
	require.NoError(b.t, err)
	return string(data)
}

// TestRenewal: at half of its life a token's file is replaced and the task is told, also by the agent that comes after this one.
func TestRenewal(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		s := &signer{}
		b.withIdentities(s, &workload.Identity{Name: "aws", File: true, TTL: time.Hour, ChangeMode: "signal", ChangeSignal: "SIGHUP"})
		b.fresh()
		require.Equal(t, taskmachine.Running, b.phase())
		require.Equal(t, "-1", b.token("secrets/nomad_token"))
		require.Equal(t, "aws-1", b.token("secrets/nomad_aws.jwt"))
		b.after(29 * time.Minute)
		require.Equal(t, "aws-1", b.token("secrets/nomad_aws.jwt"))
		b.after(8 * time.Minute)
		require.Equal(t, "aws-2", b.token("secrets/nomad_aws.jwt"))
		require.Equal(t, "-1", b.token("secrets/nomad_token"), "it has no end")
		require.Contains(t, b.history(), drover.TaskSignaling)
		require.Len(t, b.stored().Tokens, 2)

		b.apply(b.restored())
		b.after(29 * time.Minute)
		require.Equal(t, 2, s.signed(), "it does not begin anew")
		b.after(8 * time.Minute)
		require.Equal(t, "aws-3", b.token("secrets/nomad_aws.jwt"))

		s.mu.Lock()
		s.err = drover.Errorf(drover.Unavailable, "no server")
		s.mu.Unlock()
		b.after(40 * time.Minute)
		require.Equal(t, "aws-3", b.token("secrets/nomad_aws.jwt"), "it is good for longer than servers are away")
		require.Equal(t, taskmachine.Running, b.phase())
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		b.after(2 * time.Minute)
		require.Equal(t, "aws-4", b.token("secrets/nomad_aws.jwt"))
	})
}

// TestRenewalRestarts: a task that reads its token from the environment is started anew, once for all of its tokens.
func TestRenewalRestarts(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		s := &signer{}
		b.withIdentities(s, &workload.Identity{Name: "a", Env: true, TTL: time.Hour, ChangeMode: "restart"},
			&workload.Identity{Name: "b", Env: true, TTL: time.Hour, ChangeMode: "restart"})
		b.fresh()
		b.after(40 * time.Minute)
		require.Equal(t, taskmachine.Running, b.phase())
		require.Equal(t, 3, s.signed(), "one renewal of both, and the new start's tokens")
		require.Zero(t, b.runner.Status().State.Restarts-1)
	})
}

// TestNoTokens: a start without tokens fails under the restart policy, and what control refuses is told.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.withIdentities(&signer{err: drover.Errorf(drover.Unavailable, "no server answers")})
		b.fresh()
		require.Equal(t, taskmachine.Backoff, b.phase())
		b.after(2 * time.Second)
		require.Equal(t, taskmachine.Dead, b.phase())
	})
}
