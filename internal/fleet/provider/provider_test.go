package provider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/fleet/provider"
)

func TestWhatAnErrorMeans(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	for want, tt := range map[string]struct {
		err  error
		kind provider.Kind
		code drover.Code
	}{
		"transient: 503":     {&provider.Error{Kind: provider.Transient, Message: "503"}, provider.Transient, drover.Unavailable},
		"quota of c: 4 of 4": {&provider.Error{Kind: provider.Quota, Group: "c", Message: "4 of 4"}, provider.Quota, drover.Exhausted},
		"no capacity (zone): sold out": {
			&provider.Error{Kind: provider.Capacity, Scope: provider.ScopeZone, Message: "sold out"},
			provider.Capacity, drover.Exhausted,
		},
		"not_found: i-1":   {&provider.Error{Kind: provider.NotFound, Message: "i-1"}, provider.NotFound, drover.NotFound},
		"auth: expired":    {&provider.Error{Kind: provider.Auth, Message: "expired"}, provider.Auth, drover.Forbidden},
		"config: no image": {&provider.Error{Kind: provider.Config, Message: "no image"}, provider.Config, drover.Invalid},
		"ambiguous: cut":   {&provider.Error{Kind: provider.Ambiguous, Message: "cut"}, provider.Ambiguous, drover.Unavailable},
		"something":        {errors.New("something"), provider.Ambiguous, drover.Unavailable},
		"context canceled": {context.Canceled, provider.Ambiguous, drover.Unavailable},
		"listing: config: wrapped": {
			fmt.Errorf("listing: %w", &provider.Error{Kind: provider.Config, Message: "wrapped"}), provider.Config,
			drover.Invalid,
		},
		"rate limited until 2026-11-23T06:00:00Z: slow": {
			&provider.Error{Kind: provider.RateLimited, RetryAt: at, Message: "slow"}, provider.RateLimited, drover.RateLimited,
		},
	} {
		require.EqualError(t, tt.err, want)
		require.Equal(t, tt.kind, provider.KindOf(tt.err), want)
		require.Equal(t, tt.code, provider.CodeOf(tt.err), want)
	}
}

func TestBoundsOfMachinesThatShareOne(t *testing.T) {
	t.Parallel()
	b := provider.Bounds{Types: []string{"small", "big"}, Max: 3, Room: drover.Capacity{CPU: 4000, MemoryMB: 8000}}
	require.NoError(t, b.Sells("big"))
	require.Equal(t, provider.Config, provider.KindOf(b.Sells("huge")))
	require.NoError(t, provider.Bounds{}.Sells("anything"))
	for _, tt := range []struct {
		more, used drover.Capacity
		count      int
		want       provider.Kind
	}{
		{drover.Capacity{CPU: 4000, MemoryMB: 8000, DiskMB: 1 << 40}, drover.Capacity{}, 0, ""}, // disk has no limit
		{drover.Capacity{CPU: 4001}, drover.Capacity{}, 0, provider.Capacity},
		{drover.Capacity{CPU: 1000}, drover.Capacity{CPU: 3000}, 2, ""},
		{drover.Capacity{CPU: 1000}, drover.Capacity{CPU: 3001}, 2, provider.Capacity},
		{drover.Capacity{MemoryMB: 1}, drover.Capacity{MemoryMB: 8000}, 2, provider.Capacity},
		{drover.Capacity{CPU: 1}, drover.Capacity{}, 3, provider.Quota},
	} {
		err := b.Admit(tt.more, tt.used, tt.count, "here")
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, tt.want, provider.KindOf(err), "%+v", tt)
	}
	var e *provider.Error
	require.ErrorAs(t, b.Admit(drover.Capacity{}, drover.Capacity{}, 3, "here"), &e)
	require.Equal(t, provider.Error{Kind: provider.Quota, Group: "here", Limit: 3, Message: "there are 3 machines"}, *e)
	require.NoError(t, provider.Bounds{}.Admit(drover.Capacity{CPU: 1 << 40}, drover.Capacity{}, 1000, ""), "no bounds")
}

func TestTheConfigurationOfAMachineNamesItsSize(t *testing.T) {
	t.Parallel()
	require.Equal(t, `client {
  enabled = true
  node_class = "x"
  cpu_total_compute = 2000
  memory_total_mb = 4096
}
plugin "docker" {
  config {
    enabled = false
  }
}
`, provider.AgentDefaults(drover.Capacity{CPU: 2000, MemoryMB: 4096}, "  node_class = \"x\"\n"))
	require.NotContains(t, provider.AgentDefaults(drover.Capacity{}, ""), "_total_", "of what is not known the agent finds out itself")
}

func TestUserDataHasToBeAConfiguration(t *testing.T) {
	t.Parallel()
	require.NoError(t, provider.CheckUserData("", 0))
	require.NoError(t, provider.CheckUserData("client {}", 9))
	require.Equal(t, provider.Config, provider.KindOf(provider.CheckUserData("client {}", 8)))
	require.ErrorContains(t, provider.CheckUserData("#!/bin/sh\nreboot", 100), "is a script")
	require.NoError(t, provider.CheckUserData("# a comment", 100))
	for text, want := range map[string]string{
		"":                     "user-data.hcl",
		"client {}":            "user-data.hcl",
		`{"client":{}}`:        "user-data.json",
		" \n\t\r{\"a\":1}":     "user-data.json",
		"# {\nclient {\n}\n":   "user-data.hcl",
		strings.Repeat(" ", 9): "user-data.hcl",
	} {
		require.Equal(t, want, provider.UserDataFile(text), "%q", text)
	}
}

// shown is a provider that shows consoles.
type shown struct {
	provider.Provider
	text string
}

func (s shown) Console(context.Context, string) ([]byte, error) { return []byte(s.text), nil }

func TestNotAllProvidersShowTheConsole(t *testing.T) {
	t.Parallel()
	require.Nil(t, provider.ConsoleOf(struct{ provider.Provider }{}, "i-1"))
	text, err := provider.ConsoleOf(shown{text: "login:"}, "i-1")(t.Context())
	require.NoError(t, err)
	require.Equal(t, "login:", string(text))
}
