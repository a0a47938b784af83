package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestLeaves(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`
leave_on_terminate = true
client {
  drain_on_shutdown {
    deadline = "2m"
    ignore_system_jobs = true
  }
}`), "a.hcl")
	require.NoError(t, err)
	require.Empty(t, a.Ignored)
	require.Equal(t, &drover.DrainSpec{Deadline: 2 * time.Minute, IgnoreSystemJobs: true}, a.Client.Leaves())
	require.Equal(t, &drover.DrainSpec{Deadline: time.Hour}, (&Client{Drain: &DrainOnEnd{}}).Leaves())
	require.Equal(t, &drover.DrainSpec{Deadline: -1}, (&Client{Drain: &DrainOnEnd{Force: new(true)}}).Leaves())
	require.Nil(t, (&Client{}).Leaves())

	dev := Merge(Default(), DevMode())
	require.NoError(t, Merge(dev, a).Validate())
	err = Merge(dev, &Agent{Client: &Client{Drain: &DrainOnEnd{Deadline: "soon"}}}).Validate()
	require.ErrorContains(t, err, "client.drain_on_shutdown: no signal has the node leave")
	require.ErrorContains(t, err, "client.drain_on_shutdown.deadline: ")
}
