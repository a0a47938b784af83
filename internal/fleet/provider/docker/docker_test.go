package docker_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/docker"
	"github.com/drover-project/drover/internal/fleet/provider/providertest"
	"github.com/drover-project/drover/internal/id"
)

func offering(typ string) fleet.Offering {
	return fleet.Offering{
		Key: fleet.OfferingKey("docker", typ, "here", fleet.MarketOnDemand), Provider: "docker", Type: typ, Zone: "here",
		Market: fleet.MarketOnDemand, Capacity: drover.Capacity{CPU: 1000, MemoryMB: 64, DiskMB: 1000},
	}
}

// cloud is a provider with an owner of its own, whose machines go when the test ends.
func cloud(t *testing.T, owner string, b provider.Bounds) *docker.Provider {
	t.Helper()
	b.Types = []string{"small", "large"}
	p, err := docker.New(docker.Config{Endpoint: endpoint, Owner: owner, Binary: binary, Network: network, Bounds: b}, clock.Wall{})
	require.NoError(t, err)
	t.Cleanup(func() {
		list, _, err := p.List(context.Background(), "")
		require.NoError(t, err)
		for _, m := range list {
			require.NoError(t, p.Destroy(context.Background(), m.ID))
		}
		require.NoError(t, p.Close())
	})
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Harness{
		New: func(t *testing.T, owner string) provider.Provider { return cloud(t, owner, provider.Bounds{}) },
		Beside: func(t *testing.T, _ provider.Provider, owner string) provider.Provider {
			return cloud(t, owner, provider.Bounds{})
		},
		Offering: offering("small"), Wait: func(time.Duration) {},
		Scarce: func(t *testing.T, owner string) providertest.Scarce {
			p := cloud(t, owner, provider.Bounds{Max: 1, Room: drover.Capacity{MemoryMB: 10_000}})
			_, err := p.Create(t.Context(), request(owner, "first", ""))
			require.NoError(t, err)
			large := offering("large")
			large.Capacity.MemoryMB = 20_000
			return providertest.Scarce{Provider: p, Quota: offering("small"), Capacity: large, Group: "docker"}
		},
	})
}

func request(owner, intent, userData string) provider.Request {
	return provider.Request{
		Offering: offering("small"), Tags: map[string]string{fleet.TagOwner: owner},
		Intents: []provider.Intent{{ID: intent, UserData: userData, Tags: map[string]string{fleet.TagIntent: intent}}},
	}
}

func one(t *testing.T, p *docker.Provider) provider.Machine {
	t.Helper()
	list, next, err := p.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, list, 1)
	return list[0]
}

// A machine has an address of its own and is started with its user data; tags of another process are seen.
func TestMachine(t *testing.T) {
	t.Parallel()
	owner := id.Random{}.New()
	p := cloud(t, owner, provider.Bounds{})
	made, err := p.Create(t.Context(), request(owner, "a", "hello = 1"))
	require.NoError(t, err)
	require.Equal(t, provider.Running, made[0].State)
	addr, err := netip.ParseAddr(made[0].Address)
	require.NoError(t, err)
	require.True(t, addr.IsPrivate())
	for _, v := range []string{"hold", "run", "drain"} {
		require.NoError(t, p.SetTags(t.Context(), made[0].ID, map[string]string{fleet.TagBehavior: v}))
	}
	require.NoError(t, p.SetTags(t.Context(), made[0].ID, map[string]string{"x": "y"}))
	seen := one(t, cloud(t, owner, provider.Bounds{}))
	require.Equal(t, map[string]string{fleet.TagOwner: owner, fleet.TagIntent: "a", fleet.TagBehavior: "drain", "x": "y"}, seen.Tags)
	require.Eventually(t, func() bool { // it runs, and says so a moment later
		text, err := p.Console(t.Context(), made[0].ID)
		require.NoError(t, err)
		return strings.Contains(string(text), "hello = 1") && strings.Contains(string(text), "--data-dir=/var/lib/drover")
	}, time.Minute, 10*time.Millisecond)
}

// A machine of somebody's image gets our program.
func TestImages(t *testing.T) {
	t.Parallel()
	owner := id.Random{}.New()
	p := cloud(t, owner, provider.Bounds{})
	r := request(owner, "a", "")
	r.Image = "drover-test/busybox:1"
	made, err := p.Create(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, provider.Running, made[0].State)
	r.Image, r.Intents[0].ID = "drover-test/none:1", "b"
	_, err = p.Create(t.Context(), r)
	require.Equal(t, provider.Config, provider.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "drover-test/none:1")
}

func TestAMachineThatEndsByItself(t *testing.T) {
	t.Parallel()
	owner := id.Random{}.New()
	p := cloud(t, owner, provider.Bounds{})
	_, err := p.Create(t.Context(), request(owner, "a", "broken"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return one(t, p).State == provider.Terminated }, time.Minute, 10*time.Millisecond)
}

// A daemon that is not there is no reason to give up, and nobody's fault.
func TestNoDaemon(t *testing.T) {
	t.Parallel()
	p, err := docker.New(docker.Config{Endpoint: "unix:///no/such.sock", Owner: "me", Binary: binary}, clock.Wall{})
	require.NoError(t, err)
	_, _, err = p.List(t.Context(), "")
	require.Equal(t, provider.Transient, provider.KindOf(err))
	require.ErrorContains(t, err, "/no/such.sock")
	require.NoError(t, p.Close())
}
