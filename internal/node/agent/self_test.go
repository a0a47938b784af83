package agent

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// signing is a control that signs identities of nodes, unless it fails.
type signing struct {
	*control
	mu      sync.Mutex
	signed  int
	refused string
}

func (s *signing) SignIdentities(_ context.Context, nodeID string, wanted []exchange.IdentityRequest) ([]exchange.SignedIdentity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed++
	if s.refused != "" {
		return []exchange.SignedIdentity{{Refused: s.refused}}, nil
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"nomad_node_id":"` + nodeID + `"}`))
	now := time.Now()
	return []exchange.SignedIdentity{{Token: "ey." + text + ".x", Made: now, Expires: now.Add(time.Hour)}}, nil
}

func (s *signing) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed
}

// TestOwnIdentity: the node has an identity once it has registered, keeps it in a file for the next start, and renews it at half of its
// life and when it is asked to. Servers that make none are not asked again and again.
func TestOwnIdentity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t)
		control := &signing{control: b.control}
		b.signs = control
		b.start()
		require.Equal(t, 1, control.count())
		text, err := b.agent.IdentityClaims(t.Context())
		require.NoError(t, err)
		require.JSONEq(t, `{"nomad_node_id":"`+b.agent.NodeID()+`"}`, string(text))
		kept := filepath.Join(b.cfg.DataDir, "client", IdentityFile)
		info, err := os.Stat(kept)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())

		time.Sleep(29 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, control.count())
		time.Sleep(8 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, control.count(), "half of its life and up to a tenth have passed")
		require.NoError(t, b.agent.RenewIdentity(t.Context()))
		synctest.Wait()
		require.Equal(t, 3, control.count())

		control.mu.Lock()
		control.refused = "the node has no such allocation"
		control.mu.Unlock()
		require.NoError(t, b.agent.RenewIdentity(t.Context()))
		synctest.Wait()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		require.Equal(t, 4, control.count(), "the server is of an older program")
		_, err = b.agent.IdentityClaims(t.Context())
		require.NoError(t, err, "the last one counts")
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t).start()
		_, err := b.agent.IdentityClaims(t.Context())
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.Equal(t, drover.NotImplemented, drover.CodeOf(b.agent.RenewIdentity(t.Context())))
	})
}
