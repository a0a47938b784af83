package scaler

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

var update = flag.Bool("update", false, "rewrite what is expected")

// The table of situations: what is there, and below => what is decided, with the reasons that people are told.
//
//	policy max=3 spot=prefer …             of policy()
//	work NAME cores=1 count=4 since=60s …
//	machine ID TYPE STATE work=1 idle=1h … unlike others: used=CORES age=1h behavior=hold lost=15m left=2m
//	lacks TYPE ZONE SCOPE                   the cloud had none a moment ago
//	quota GROUP USED                        it refused more
//	dead TYPE ZONE N                        so many did not boot
func TestSituations(t *testing.T) {
	t.Parallel()
	const file = "testdata/situations.txtar"
	a, err := txtar.ParseFile(file)
	require.NoError(t, err)
	for k := range a.Files {
		f := &a.Files[k]
		given, want, _ := strings.Cut(string(f.Data), "=>\n")
		got := told(Decide(situated(t, given)))
		if *update {
			f.Data = []byte(given + "=>\n" + got)
			continue
		}
		require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), f.Name)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, txtar.Format(a), 0o644))
	}
}

func told(out Output) string {
	var b strings.Builder
	for _, a := range out.Actions {
		what := a.Instance
		if a.Kind == fleet.ActionCreate {
			what = fmt.Sprintf("%d %s", a.Count, a.Buys.Key)
		}
		fmt.Fprintf(&b, "%s %s (%s): %s\n", a.Kind, what, a.Why, a.Reason)
	}
	for _, w := range out.Waiting {
		fmt.Fprintf(&b, "waiting %s: %s\n", w.Class, w.Reason)
	}
	if !out.Wake.IsZero() {
		fmt.Fprintf(&b, "again in %s\n", out.Wake.Sub(start).Round(time.Second))
	}
	return b.String()
}

// fields is key=value words.
type fields map[string]string

func (f fields) number(key string) float64 {
	v, _ := strconv.ParseFloat(f[key], 64)
	return v
}

func (f fields) ago(key string, def time.Duration) time.Time {
	if d, err := time.ParseDuration(f[key]); err == nil {
		return start.Add(-d)
	}
	return start.Add(-def)
}

func situated(t *testing.T, given string) Input {
	p := policy()
	in := input(p)
	for line := range strings.Lines(given) {
		words, f := strings.Fields(line), fields{}
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		for _, w := range words {
			if key, value, ok := strings.Cut(w, "="); ok {
				f[key] = value
			}
		}
		switch words[0] {
		case "policy":
			p.Max, p.Min, p.Spot, p.Consolidate = int(f.number("max")), int(f.number("min")), f["spot"], f["consolidate"] != ""
			p.Budget.PerHour, p.Budget.PerDay = f.number("per_hour"), f.number("per_day")
			in.Offerings = p.Offerings()
		case "work":
			c := work(words[1], int(f.number("cores")), int(f.number("count")))
			c.Since = f.ago("since", 0)
			in.Demand = append(in.Demand, c)
		case "machine":
			in.Instances = append(in.Instances, situatedMachine(p, words, f))
		case "lacks":
			o := sold(in.Offerings, words[1], words[2])
			in.Beliefs.Created(start, o, p.Template(), 0, 0, &provider.Error{Kind: provider.Capacity, Scope: provider.Scope(words[3])})
		case "quota":
			used, _ := strconv.ParseInt(words[2], 10, 64)
			in.GroupUsed[words[1]] = used
			in.Beliefs.Created(start, &in.Offerings[0], p.Template(), 0, used, &provider.Error{Kind: provider.Quota, Group: words[1]})
		case "dead":
			n, _ := strconv.Atoi(words[3])
			for range n {
				in.Beliefs.BootFailed(start, sold(in.Offerings, words[1], words[2]), p.Template())
			}
		default:
			require.Fail(t, "unknown word "+words[0])
		}
	}
	return in
}

func sold(list []fleet.Offering, typ, zone string) *fleet.Offering {
	var found *fleet.Offering // spot, if it is sold
	for i := range list {
		if list[i].Type == typ && list[i].Zone == zone && (found == nil || list[i].Market == fleet.MarketSpot) {
			found = &list[i]
		}
	}
	return found
}

var situatedStates = map[string]fleet.InstanceState{
	"creating": fleet.InstanceCreating, "booting": fleet.InstanceBooting, "active": fleet.InstanceActive, "draining": fleet.InstanceDraining,
}

func situatedMachine(p *fleet.Policy, words []string, f fields) *fleet.Instance {
	i := machine(p, words[1], words[2], situatedStates[words[3]])
	i.PlannedAt = f.ago("age", time.Hour)
	i.CreatedAt, i.StateAt, i.ReadyAt = i.PlannedAt, i.PlannedAt, i.PlannedAt
	i.IdleAt = f.ago("idle", 0)
	i.Movable, i.Quiet = f["movable"] != "", f["quiet"] != ""
	if n := int(f.number("work")); n > 0 {
		cores := int64(f.number("used") * 1000)
		i.Work, i.IdleAt, i.Used = n, time.Time{}, drover.Capacity{CPU: cores, MemoryMB: cores}
	}
	if f["behavior"] != "" {
		i.Behavior = fleet.IdleBehavior(f["behavior"])
	}
	if f["template"] != "" {
		i.Template = f["template"]
	}
	if f["lost"] != "" {
		i.LostAt = f.ago("lost", 0)
	}
	if d, err := time.ParseDuration(f["left"]); err == nil {
		i.InterruptAt = start.Add(d)
	}
	if d, err := time.ParseDuration(f["expires"]); err == nil {
		i.ExpiresAt = start.Add(d)
	}
	if f["why"] != "" {
		i.Why, i.Reason = f["why"], f["why"]
	}
	return i
}
