package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
)

// Result is all that a command gave.
type Result struct {
	Out, Err string
	Receipt  execution.Receipt
}

// Sh runs a script as the task's default user.
func Sh(t testing.TB, h driver.Execer, script string) Result {
	t.Helper()
	return Do(t, h, execution.Spec{Argv: []string{"/bin/sh", "-c", script}})
}

// Root runs a script as the task's root.
func Root(t testing.TB, h driver.Execer, script string) Result {
	t.Helper()
	return Do(t, h, execution.Spec{Argv: []string{"/bin/sh", "-c", script}, Privileged: true})
}

// Do runs an execution to its end; one without an id gets one.
func Do(t testing.TB, h driver.Execer, spec execution.Spec) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if spec.ID == "" {
		spec.ID = id.Random{}.New()
	}
	s, err := h.StartExecution(ctx, spec)
	require.NoError(t, err)
	r, err := Drain(ctx, s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return r
}

// Drain reads a session to its end.
func Drain(ctx context.Context, s execution.Session) (Result, error) {
	var r Result
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		switch {
		case f.Receipt != nil:
			r.Receipt = *f.Receipt
		case f.Stream == execution.Stdout:
			r.Out += string(f.Data)
		case f.Stream == execution.Stderr:
			r.Err += string(f.Data)
		}
	}
}

// Start starts a task, which is destroyed at the end of the test.
func Start(t testing.TB, d driver.Driver, spec driver.Spec) driver.Handle {
	t.Helper()
	h, err := d.Start(t.Context(), spec)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Destroy(context.Background())) })
	return h
}

// ThroughJSON is what a new agent reads of a state.
func ThroughJSON(t testing.TB, s driver.State) driver.State {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	var back driver.State
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}
