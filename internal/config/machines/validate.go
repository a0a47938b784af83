package machines

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/config/form"
)

// kinds are the types of providers that there are.
var kinds = []string{"loopback", "docker", "ec2"}

// Problems returns everything that is wrong with the block. several says that the server is one of several.
func (f *Fleet) Problems(several bool) (errs []error) {
	if f == nil {
		return nil
	}
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
		}
	}
	known := map[string]*Provider{}
	for _, p := range f.Providers {
		key := "fleet.provider." + p.Name
		check(known[p.Name] == nil, key, "is there twice")
		known[p.Name] = p
		check(slices.Contains(kinds, p.Kind()), key+".type", "must be loopback, docker or ec2, got %q", p.Kind())
		check(p.Kind() != "ec2" || p.Region != "", key+".region", "must be set")
		check(p.Kind() != "loopback" || p.Dir != "" || !several, key+".dir", "must be set where there are several servers: whichever leads has "+
			"to find the machines of the others there, which are processes, so all servers must be on one machine")
		d := &form.Durations{}
		d.Read("stop_timeout", p.StopTimeout)
		check(d.Read("price_interval", p.PriceEvery) >= time.Second || p.PriceEvery == "", key+".price_interval", "must be at least 1s, got %q",
			p.PriceEvery)
		check(len(d.Wrong) == 0, key, "%v", d.Wrong)
	}
	seen := map[string]bool{}
	for _, p := range f.Pools {
		check(!seen[p.Name], "fleet.pool."+p.Name, "is there twice")
		seen[p.Name] = true
		provider, region := p.text("Provider"), p.text("Region")
		check(known[provider] != nil, "fleet.pool."+p.Name+".provider", "there is no provider %q in the fleet block", provider)
		if _, err := p.Policy(); err != nil {
			errs = append(errs, err)
			continue
		}
		if c := known[provider]; c != nil {
			check(region == "" || region == c.Region, "fleet.pool."+p.Name+".region",
				"is %q, but provider %q has %q: another region is another provider block", region, c.Name, c.Region)
		}
	}
	return errs
}
