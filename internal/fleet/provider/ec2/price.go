package ec2

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// typesEach is how many types a call for prices names.
const typesEach = 100

// Prices implements provider.Pricer: what spot machines cost now. On-demand prices are not in this API, and change
// rarely: the policy names them.
func (p *Provider) Prices(ctx context.Context, offerings []fleet.Offering) (map[string]float64, error) {
	wanted := map[[2]string][]string{} // keys of offerings, by type and zone
	var types, zones []string
	for i := range offerings {
		o := &offerings[i]
		if o.Market != fleet.MarketSpot {
			continue
		}
		at := [2]string{o.Type, o.Zone}
		wanted[at] = append(wanted[at], o.Key)
		if !slices.Contains(types, o.Type) {
			types = append(types, o.Type)
		}
		if !slices.Contains(zones, o.Zone) {
			zones = append(zones, o.Zone)
		}
	}
	prices := map[string]float64{}
	for some := range slices.Chunk(types, typesEach) {
		if err := p.spotPrices(ctx, some, zones, func(typ, zone string, price float64) {
			for _, key := range wanted[[2]string{typ, zone}] {
				prices[key] = price
			}
		}); err != nil {
			return nil, err
		}
	}
	return prices, nil
}

// spotPrices tells the newest price of the types in the zones.
func (p *Provider) spotPrices(ctx context.Context, types, zones []string, tell func(typ, zone string, price float64)) error {
	now := p.clock.Now().UTC().Format(time.RFC3339)
	form := url.Values{
		"StartTime": {now}, "EndTime": {now}, "ProductDescription.1": {"Linux/UNIX"}, "MaxResults": {strconv.Itoa(pageSize)},
		"Filter.1.Name": {"availability-zone"},
	}
	for n, t := range types {
		form.Set(fmt.Sprintf("InstanceType.%d", n+1), t)
	}
	for n, z := range zones {
		form.Set(fmt.Sprintf("Filter.1.Value.%d", n+1), z)
	}
	newest := map[[2]string]time.Time{}
	for {
		var answer struct {
			XMLName xml.Name `xml:"DescribeSpotPriceHistoryResponse"`
			Items   []struct {
				Type  string `xml:"instanceType"`
				Zone  string `xml:"availabilityZone"`
				Price string `xml:"spotPrice"`
				At    string `xml:"timestamp"`
			} `xml:"spotPriceHistorySet>item"`
			Next string `xml:"nextToken"`
		}
		if err := p.call(ctx, provider.CallList, "DescribeSpotPriceHistory", form, &answer, subject{}); err != nil {
			return err
		}
		for _, i := range answer.Items {
			price, err := strconv.ParseFloat(i.Price, 64)
			at, _ := time.Parse(time.RFC3339Nano, i.At) // without a time it is older than all others
			key := [2]string{i.Type, i.Zone}
			if old, known := newest[key]; err != nil || price <= 0 || known && !at.After(old) {
				continue
			}
			newest[key] = at
			tell(i.Type, i.Zone, price)
		}
		if answer.Next == "" {
			return nil
		}
		form.Set("NextToken", answer.Next)
	}
}

var _ provider.Pricer = (*Provider)(nil)
