package loopback_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/loopback"
	"github.com/drover-project/drover/internal/fleet/provider/providertest"
)

func offering(typ string) fleet.Offering {
	return fleet.Offering{
		Key: fleet.OfferingKey("loopback", typ, "here", fleet.MarketOnDemand), Provider: "loopback", Type: typ, Zone: "here",
		Market: fleet.MarketOnDemand, Capacity: drover.Capacity{CPU: 1000, MemoryMB: 256, DiskMB: 1000},
	}
}

func cloud(t *testing.T, cfg loopback.Config) *loopback.Provider {
	t.Helper()
	return cloudOf(t, "me", cfg)
}

// cloudOf is a provider whose machines all go when the test ends, also those that it made for somebody else.
func cloudOf(t *testing.T, owner string, cfg loopback.Config) *loopback.Provider {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	cfg.Owner, cfg.Types = owner, []string{"small", "large"}
	p, err := loopback.New(cfg, clock.Wall{})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, owner := range []string{owner, "me", "somebody-else"} {
			cfg.Owner = owner
			p, err := loopback.New(cfg, clock.Wall{})
			require.NoError(t, err)
			list, _, err := p.List(context.Background(), "")
			require.NoError(t, err)
			for _, m := range list {
				if m.State == provider.Running {
					require.NoError(t, p.Destroy(context.Background(), m.ID))
				}
			}
		}
	})
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providertest.Run(t, providertest.Harness{
		New: func(t *testing.T, owner string) provider.Provider {
			return cloudOf(t, owner, loopback.Config{Dir: dir})
		},
		Beside: func(t *testing.T, _ provider.Provider, owner string) provider.Provider {
			return cloudOf(t, owner, loopback.Config{Dir: dir})
		},
		Offering: offering("small"), Wait: func(time.Duration) {},
		Scarce: func(t *testing.T, owner string) providertest.Scarce {
			p := cloudOf(t, owner, loopback.Config{Bounds: provider.Bounds{Max: 1, Room: drover.Capacity{MemoryMB: 10_000}}})
			_, err := p.Create(t.Context(), request("first", offering("small")))
			require.NoError(t, err)
			large := offering("large")
			large.Capacity.MemoryMB = 20_000
			return providertest.Scarce{Provider: p, Quota: offering("small"), Capacity: large, Group: "loopback"}
		},
	})
}

func request(intent string, o fleet.Offering) provider.Request {
	return provider.Request{
		Offering: o, Tags: map[string]string{fleet.TagOwner: "me"},
		Intents: []provider.Intent{{ID: intent, UserData: "# none", Tags: map[string]string{fleet.TagIntent: intent}}},
	}
}

func one(t *testing.T, p *loopback.Provider) provider.Machine {
	t.Helper()
	list, next, err := p.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, list, 1)
	return list[0]
}

// Another process finds what the first one made, with its tags and address, and can destroy it.
func TestMachinesOutliveTheirMaker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, err := cloud(t, loopback.Config{Dir: dir}).Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	p := cloud(t, loopback.Config{Dir: dir})
	require.Equal(t, made[0], one(t, p))
	require.Equal(t, provider.Running, made[0].State)
	require.NoError(t, p.Destroy(t.Context(), made[0].ID))
	require.Equal(t, provider.Terminated, one(t, p).State)
	require.NoDirExists(t, filepath.Join(dir, made[0].ID, "data"))
	again, err := p.Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	require.Equal(t, provider.Terminated, again[0].State, "an intent buys one machine, ever")
}

// A create that was cut off between record and process leaves a machine that is listed, and that a repeat completes.
func TestACreateThatWasCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := cloud(t, loopback.Config{Dir: dir, StopTimeout: -1})
	made, err := p.Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	file := filepath.Join(dir, made[0].ID, "machine.json")
	was, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, p.Destroy(t.Context(), made[0].ID))
	early := strings.Replace(string(was), `"Started": true`, `"Started": false`, 1)
	require.NotEqual(t, string(was), early)
	require.NoError(t, os.WriteFile(file, []byte(early), 0o600))
	require.Equal(t, provider.Pending, one(t, p).State)
	made, err = cloud(t, loopback.Config{Dir: dir}).Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	require.Equal(t, one(t, p), made[0])
	require.Equal(t, provider.Running, made[0].State)
}

// What can't be started is refused, and nothing is left of it.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := cloud(t, loopback.Config{Dir: dir, Command: []string{"/no/such/program"}})
	made, err := p.Create(t.Context(), request("a", offering("small")))
	require.Equal(t, provider.Config, provider.KindOf(err))
	require.Empty(t, made)
	list, _, err := p.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, list)
}

// A machine whose agent ended is terminated; what the agent wrote is still to be read.
func TestAMachineThatEndsByItself(t *testing.T) {
	t.Parallel()
	p := cloud(t, loopback.Config{Command: []string{"/bin/sh", "-c", "echo boot: it broke; exit 1"}})
	made, err := p.Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return one(t, p).State == provider.Terminated }, time.Minute, time.Millisecond)
	text, err := p.Console(t.Context(), made[0].ID)
	require.NoError(t, err)
	require.Equal(t, "boot: it broke\n", string(text))
	require.Equal(t, provider.NotFound, provider.KindOf(p.Destroy(t.Context(), made[0].ID)))
}

// What a machine started goes with it, also what left its parent and its session, as supervisors of tasks do.
func TestNothingOutlivesItsMachine(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "pid")
	script := `mkdir -p data/bin && cp "$(command -v sleep)" data/bin/
		(setsid "$PWD/data/bin/sleep" 1000 & echo $! >` + mark + `.new)
		mv ` + mark + `.new ` + mark + `; sleep 1000 & wait`
	p := cloud(t, loopback.Config{Command: []string{"/bin/sh", "-c", script}, StopTimeout: -1})
	made, err := p.Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	var text []byte
	require.Eventually(t, func() bool { text, err = os.ReadFile(mark); return err == nil }, time.Minute, time.Millisecond)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, p.Destroy(t.Context(), made[0].ID))
	state, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.True(t, len(state) == 0 || strings.Contains(string(state), ") Z "), "it lives: %s", state)
}

func TestBadUserData(t *testing.T) {
	t.Parallel()
	p := cloud(t, loopback.Config{})
	r := request("a", offering("small"))
	r.Intents[0].UserData = "#!/bin/sh\nreboot\n"
	_, err := p.Create(t.Context(), r)
	require.Equal(t, provider.Config, provider.KindOf(err))
	require.ErrorContains(t, err, "user data")
}

// A machine's agent is known by its number and the time of its start. It shows no arguments for some milliseconds after an
// exec on a busy machine, and was taken for dead then. This one never shows its own.
func TestAnAgentThatShowsNoArgumentsIsAlive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := cloud(t, loopback.Config{Dir: dir, Command: []string{"/bin/sh", "-c", "exec sleep 1000"}, StopTimeout: -1})
	made, err := p.Create(t.Context(), request("a", offering("small")))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, made[0].ID, "machine.json"))
	require.NoError(t, err)
	var r struct{ PID int }
	require.NoError(t, json.Unmarshal(text, &r))
	arguments := func() string {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(r.PID), "cmdline"))
		require.NoError(t, err)
		return string(line)
	}
	require.Eventually(t, func() bool { return arguments() == "sleep\x001000\x00" }, time.Minute, time.Millisecond)
	require.Equal(t, provider.Running, one(t, p).State)
	require.NoError(t, p.Destroy(t.Context(), made[0].ID))
	require.NoDirExists(t, filepath.Join("/proc", strconv.Itoa(r.PID)))
}
