package enrol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/keeper"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
	"github.com/drover-project/drover/internal/node/machine"
)

// Machines of a batch have equal user data, and each finds its own token in them; the server takes it for that machine's.
func TestAMachineOfABatchFindsItsToken(t *testing.T) {
	t.Parallel()
	key := []byte("k")
	home := bootstrap.Home{Kind: provider.KindEC2, Server: "10.0.0.1:4647", Datacenter: "dc1"}
	p := &fleet.Policy{Name: "std", NodePool: "cloud", UserData: "${config}", TerminateAtDead: time.Minute}
	require.True(t, bootstrap.Shareable(p))
	data, b := keeper.UserData(home, key), provider.Batch{ID: "x", Size: 3}
	text := data(p, b.Intent(0))
	require.Equal(t, text, data(p, b.Intent(2)))
	require.NotContains(t, text, "join_token =")

	c := ec2test.New(t)
	keys := ec2.Static(ec2test.AccessKey, ec2test.SecretKey)
	cloud, err := ec2.New(ec2.Config{Region: ec2test.Region, Endpoint: c.URL, Owner: "me", Credentials: keys}, clock.Wall{})
	require.NoError(t, err)
	req := provider.Request{Offering: fleet.Offering{Type: "m5.large"}, Image: "ami-1"}
	for _, id := range b.Intents() {
		req.Intents = append(req.Intents, provider.Intent{ID: id, UserData: text})
	}
	made, err := cloud.Create(t.Context(), req)
	require.NoError(t, err)
	require.Len(t, made, 3)
	for _, m := range made {
		file := filepath.Join(t.TempDir(), "agent.hcl")
		given := strings.ReplaceAll(text, bootstrap.MetadataService, c.Metadata(m.ID))
		require.NoError(t, os.WriteFile(file, []byte(given), 0o600))
		cfg, err := config.Load(file)
		require.NoError(t, err)
		whole := config.Merge(config.Default(), cfg)
		whole.DataDir = t.TempDir()
		require.NoError(t, whole.Validate())
		token, err := JoinToken(t.Context(), cfg.Client, "")
		require.NoError(t, err)
		intent, err := pool.IntentOf(key, token)
		require.NoError(t, err)
		require.Equal(t, m.Intent, intent)
	}
	_, err = machine.LaunchToken(t.Context(), c.Metadata(made[2].ID), []string{"a"})
	require.ErrorContains(t, err, "client.machine.join_tokens: has 1 tokens")
	_, err = machine.LaunchToken(t.Context(), c.Metadata("i-none"), []string{"a"})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}
