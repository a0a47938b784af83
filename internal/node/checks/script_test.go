//go:build !windows

package checks

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/fake"
	"github.com/drover-project/drover/service"
)

// running is a task in a world of fake tasks.
func running(t *testing.T) driver.Handle {
	t.Helper()
	d := fake.New(fake.Config{Clock: clock.Wall{}})
	h, err := d.Start(t.Context(), driver.Spec{
		ID: "a/t/1", TaskName: "t", Config: map[string]any{}, Env: map[string]string{"X": "y"}, Pool: true,
	})
	require.NoError(t, err)
	return h
}

func TestScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := running(t)
		defer func() { require.NoError(t, h.Destroy(t.Context())) }()
		for name, c := range map[string]struct {
			script string
			code   int
			output string
			ok     bool
		}{
			"well":     {"echo all is $X; exit 0", 0, "all is y\n", true},
			"a warner": {"echo hm >&2; exit 1", 1, "hm\n", false},
			"a failer": {"exit 2", 2, "", false},
			"a hanger": {"echo begun; sleep 60", 0, "nomad: the script took longer than 3s and was killed: begun\n", false},
			"a talker": {"yes 5000", 0, strings.Repeat("y\n", maxOutput/2), true},
		} {
			check := &Check{Type: "script", Task: "t", Command: "/bin/sh", Args: []string{"-c", c.script}, Timeout: 3 * time.Second}
			ctx, cancel := context.WithTimeout(t.Context(), check.Timeout+time.Second)
			code, output, ok := Script(ctx, h, check)
			cancel()
			require.Equal(t, c.code, code, name)
			require.Equal(t, c.output, output, name)
			require.Equal(t, c.ok, ok, name)
		}
		_, output, ok := Script(t.Context(), h, &Check{Command: "/no/such", Timeout: time.Second})
		require.False(t, ok)
		require.Contains(t, output, "/no/such")
		list, err := h.(driver.Execer).Executions(t.Context())
		require.NoError(t, err)
		require.Empty(t, list, "none of them is left")
	})
}

// plain is a task of a driver that runs no commands.
type plain struct{ driver.Handle }

func TestScriptOfADriverThatRunsNone(t *testing.T) {
	t.Parallel()
	_, output, ok := Script(t.Context(), plain{}, &Check{Task: "t"})
	require.False(t, ok)
	require.Equal(t, "nomad: the driver of task t cannot run commands in it", output)
}

// coded answers with an exit code.
type coded struct{ code atomic.Int32 }

func (p *coded) Probe(context.Context, *Check) (int, string, bool) {
	return int(p.code.Load()), "", p.code.Load() == 0
}

// A warning is no success, but a rollout may be content with it.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for rule, content := range map[string]bool{
		service.OnUpdateRequireHealthy: false, service.OnUpdateIgnoreWarnings: true, service.OnUpdateIgnore: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			p, warned := &coded{}, atomic.Int32{}
			p.code.Store(Warning)
			s := New(Deps{Clock: clock.Wall{}, Prober: p, Changed: func(_ *Check, ok, warning bool) {
				if !ok && warning {
					warned.Add(1)
				}
			}})
			c := &Check{Type: "script", OnUpdate: rule, Interval: time.Second, Timeout: time.Second}
			s.Update(t.Context(), []*Check{c})
			synctest.Wait()
			require.Equal(t, content, s.Passing(), rule)
			require.Equal(t, service.CheckFailure, s.Statuses()[c.ID()].Status)
			require.Equal(t, int32(1), warned.Load())
			p.code.Store(2)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, rule == service.OnUpdateIgnore, s.Passing(), rule)
			require.Equal(t, int32(1), warned.Load())
			s.Close()
		})
	}
}
