package ec2_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// The newest price of each type and zone counts, whatever page it is on; on-demand prices are not told.
func TestSpotPrices(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	then := time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC)
	c.With(func(c *ec2test.Cloud) {
		c.PageMost = 1
		c.SpotPrices = []ec2test.SpotPrice{
			{Type: "m5.large", Zone: "eu-test-1a", Price: 0.05, At: then},
			{Type: "m5.large", Zone: "eu-test-1a", Price: 0.03, At: then.Add(time.Hour)},
			{Type: "m5.large", Zone: "eu-test-1a", Price: 9, At: then.Add(1000 * time.Hour)},
			{Type: "m5.large", Zone: "eu-test-1c", Price: 8, At: then},
			{Type: "c5.large", Zone: "eu-test-1a", Price: 0.04},
		}
	})
	p := account(t, c, "me")
	prices, err := p.Prices(t.Context(), []fleet.Offering{
		offering("m5.large", fleet.MarketSpot), offering("m5.large", fleet.MarketOnDemand), offering("c5.large", fleet.MarketSpot),
	})
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"ec2/m5.large/eu-test-1a/spot": 0.03, "ec2/c5.large/eu-test-1a/spot": 0.04}, prices)

	prices, err = p.Prices(t.Context(), []fleet.Offering{offering("m5.large", fleet.MarketOnDemand)})
	require.NoError(t, err)
	require.Empty(t, prices)
	require.Equal(t, 2, c.Calls["DescribeSpotPriceHistory"], "a page each, and no call for nothing")

	var many []fleet.Offering
	for n := range 150 {
		many = append(many, offering(fmt.Sprintf("t%d", n), fleet.MarketSpot))
	}
	_, err = p.Prices(t.Context(), many)
	require.NoError(t, err)
	require.Equal(t, 4, c.Calls["DescribeSpotPriceHistory"], "a hundred types a call")

	wrong := account(t, c, "me", func(cfg *ec2.Config) {
		cfg.Credentials = ec2.Static(ec2test.AccessKey, "x")
	})
	_, err = wrong.Prices(t.Context(), many)
	require.Equal(t, provider.Auth, provider.KindOf(err))
}
