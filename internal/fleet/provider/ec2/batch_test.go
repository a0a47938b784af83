package ec2_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

func batchRequest(b provider.Batch, intents ...string) provider.Request {
	r := request("", offering("m5.large", fleet.MarketOnDemand))
	r.Intents = nil
	for _, id := range intents {
		r.Intents = append(r.Intents, provider.Intent{ID: id, UserData: "#!/bin/sh\n# " + b.ID, Tags: map[string]string{fleet.TagIntent: id}})
	}
	return r
}

// A hundred machines are two calls, where Amazon allows five at once and two a second.
func TestABatchIsOneCall(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me")
	c.Throttle("RunInstances", 2, 5)
	caps := p.Capabilities()
	require.Equal(t, provider.Rate{PerSecond: 2, Burst: 5}, caps.Creates)
	require.Equal(t, provider.Rate{PerSecond: 2, Burst: 1000}, caps.Rates[provider.CallCreate])
	for _, name := range []string{"x", "y"} {
		b := provider.Batch{ID: name, Size: caps.Batch}
		made, err := p.Create(t.Context(), batchRequest(b, b.Intents()...))
		require.NoError(t, err)
		require.Len(t, made, 50)
	}
	require.Len(t, c.Instances(), 100)
	require.Equal(t, 2, c.Calls["RunInstances"])
	form := c.Instances()[0].Form
	require.Equal(t, "1", form["MinCount"])
	require.Equal(t, "50", form["MaxCount"])
	tags := map[string]string{}
	for _, n := range []string{"1", "2", "3", "4"} {
		tags[form["TagSpecification.1.Tag."+n+".Key"]] = form["TagSpecification.1.Tag."+n+".Value"]
	}
	require.Equal(t, "x/50", tags[fleet.TagBatch], "from the first moment")
	require.Equal(t, "me", tags[fleet.TagOwner])
	require.NotContains(t, tags, fleet.TagIntent)
}

// Amazon makes what it has. The rest is surely not made, now and when it is asked again.
func TestABatchThatIsMadeInPart(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me")
	c.With(func(c *ec2test.Cloud) { c.Left["m5.large"] = 3 })
	b := provider.Batch{ID: "x", Size: 5}
	c.Fail("RunInstances", ec2test.Fault{After: true})
	_, err := p.Create(t.Context(), batchRequest(b, b.Intents()...))
	require.Equal(t, provider.Ambiguous, provider.KindOf(err))
	c.With(func(c *ec2test.Cloud) { c.Left["m5.large"] = 10 }) // what is there now changes nothing
	for _, asked := range [][]string{b.Intents(), {b.Intent(0), b.Intent(4)}} {
		made, err := p.Create(t.Context(), batchRequest(b, asked...))
		require.Equal(t, provider.Capacity, provider.KindOf(err))
		require.ErrorContains(t, err, "Amazon made 3 of 5")
		require.Len(t, made, 3)
		for k, m := range made {
			require.Equal(t, b.Intent(k), m.Intent)
		}
	}
	made, err := p.Create(t.Context(), batchRequest(b, b.Intent(2)))
	require.NoError(t, err, "all that was asked about is there")
	require.Len(t, made, 3)
	require.Len(t, c.Instances(), 3)
}

// That the token of a batch is of a machine that is gone says nothing about the others.
func TestABatchOfWhichAMachineIsGone(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]provider.Kind{
		(provider.Batch{ID: "x", Size: 2}).Intent(1): provider.Ambiguous,
		"alone": provider.NotFound,
	} {
		c := ec2test.New(t)
		c.Fail("RunInstances", ec2test.Fault{Code: "IdempotentInstanceTerminated"})
		_, err := account(t, c, "me").Create(t.Context(), batchRequest(provider.Batch{}, id))
		require.Equal(t, want, provider.KindOf(err))
	}
}

// Two batches and a machine alone in one request are three calls; one that fails leaves what was made before it.
func TestSeveralBatchesAtOnce(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	p := account(t, c, "me")
	x, y := provider.Batch{ID: "x", Size: 2}, provider.Batch{ID: "y", Size: 2}
	made, err := p.Create(t.Context(), batchRequest(provider.Batch{}, x.Intent(0), x.Intent(1), "alone", y.Intent(1)))
	require.NoError(t, err)
	require.Len(t, made, 5, "all of both batches")
	require.Equal(t, 3, c.Calls["RunInstances"])
}
