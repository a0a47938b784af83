package office

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Apply replaces the pools of the configuration by those of a file, or says what that would change. Any server may be asked.
// Errors: Invalid, with the key; Conflict if the pools changed since the caller or this server looked; Unavailable.
func (o *Office) Apply(ctx context.Context, ask fleet.Application) (fleet.Applied, error) {
	out := fleet.Applied{Server: o.deps.Server, Changes: []fleet.Change{}}
	policies, from := ask.Pools, "a file"
	if policies == nil {
		var err error
		if policies, err = o.deps.Configured(); err != nil {
			return out, err
		}
		if policies == nil {
			return out, drover.Errorf(drover.Invalid, "Pools: the configuration of server %s has no pool block: name a file that has", out.Server)
		}
		from = "the configuration of " + out.Server
	} else if err := o.check(policies); err != nil {
		return out, err
	}
	s := o.deps.State()
	out.Version = fleet.PoolsVersion(s.FleetPools())
	if ask.Version != 0 && ask.Version != out.Version {
		return out, drover.Errorf(drover.Conflict, "Version: the fleet's pools are at version %d and not %d: look again", out.Version,
			ask.Version)
	}
	put := Configured(s, policies)
	out.Changes = changes(s, put)
	if ask.Preview || len(put) == 0 {
		return out, nil
	}
	if err := o.deps.Log.ApplyPools(ctx, put, out.Version); err != nil {
		return out, err
	}
	out.Applied, out.Version = true, fleet.PoolsVersion(o.deps.State().FleetPools())
	for k := range out.Changes {
		c := &out.Changes[k]
		o.deps.Audit.Add(fleet.Audit{Pool: c.Pool, What: "apply", Why: "operator", Reason: Told(c) + ", by " + from})
	}
	return out, nil
}

// check checks the pools of a file. Errors: Invalid, with the key.
func (o *Office) check(policies []*fleet.Policy) error {
	seen := map[string]bool{}
	for i, p := range policies {
		if p == nil {
			return drover.Errorf(drover.Invalid, "Pools[%d]: must not be null", i)
		}
		p.Retiring = false
		p.Canonicalize()
		if err := p.Validate(); err != nil {
			return err
		}
		if seen[p.Name] {
			return drover.Errorf(drover.Invalid, "Pools[%d].Name: there are two pools %q", i, p.Name)
		}
		seen[p.Name] = true
		region, known := o.deps.Regions[p.Provider]
		if !known {
			return drover.Errorf(drover.Invalid, "fleet[%s].Provider: there is no provider %q in the fleet block of server %s", p.Name, p.Provider,
				o.deps.Server)
		}
		if p.Region != "" && p.Region != region {
			return drover.Errorf(drover.Invalid, "fleet[%s].Region: is %q, but provider %q has %q: another region is another provider", p.Name,
				p.Region, p.Provider, region)
		}
	}
	return nil
}

// Differs says how the pools of a file differ from those of the state, one text for each pool. It is nil if they do not, or if
// the file has none.
func Differs(s State, policies []*fleet.Policy) (texts []string) {
	if policies == nil {
		return nil
	}
	list := changes(s, Configured(s, policies))
	for k := range list {
		texts = append(texts, Told(&list[k]))
	}
	return texts
}

// changes says what the pools that are to be stored change.
func changes(s State, put []*fleet.Pool) []fleet.Change {
	machines := map[string]int{}
	for i := range s.FleetInstances("") {
		if i.State != fleet.InstanceGone {
			machines[i.Pool]++
		}
	}
	list := []fleet.Change{}
	for _, p := range put {
		c := fleet.Change{Pool: p.Name, What: fleet.ChangeAdd, Machines: machines[p.Name]}
		switch old := s.FleetPool(p.Name); {
		case p.Retiring:
			c.What = fleet.ChangeRetire
		case old != nil && !old.Retiring:
			c.What, c.Keys = fleet.ChangeKeys, fleet.Differences(old.Policy, p.Policy)
			c.Replaces = c.Machines > 0 && old.Policy.Template() != p.Policy.Template()
		}
		list = append(list, c)
	}
	return list
}

// Told is a change in words; it names some of the keys that change.
func Told(c *fleet.Change) string {
	switch c.What {
	case fleet.ChangeAdd:
		return "pool " + c.Pool + " is new"
	case fleet.ChangeRetire:
		return "pool " + c.Pool + " ends"
	}
	const most = 3
	var keys []string
	for _, k := range c.Keys[:min(most, len(c.Keys))] {
		keys = append(keys, k.Key)
	}
	text := strings.Join(keys, ", ")
	switch {
	case len(c.Keys) == 0:
		text = "its source" // it was made over the API
	case len(c.Keys) > most:
		text = fmt.Sprintf("%s and %d more", text, len(c.Keys)-most)
	}
	return "pool " + c.Pool + " differs in " + text
}
