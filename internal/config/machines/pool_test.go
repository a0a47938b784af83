package machines

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

const wholePool = `
pool "std" {
  provider          = "local"
  region            = "eu"
  zones             = ["a", "b"]
  node_pool         = "np"
  datacenter        = "dc"
  spot              = "prefer"
  image             = "img"
  user_data         = "boot"
  tags              = { a = "b" }
  min               = 1
  max               = 5
  max_price         = 3.5
  wait_cost         = 2
  idle              = "90s"
  expire            = "24h"
  boot_timeout      = "1m"
  lost_timeout      = "2m"
  adopt_grace       = "3m"
  orphan_grace      = "4m"
  terminate_at_dead = "5m"
  disruption        = 0.5
  consolidate       = true
  spot_spread       = 2
  boot_probe        = "bp"
  run_probe         = "rp"
  limits {
    cpu    = 9000
    memory = 90000
    disk   = 900000
  }
  budget {
    per_hour          = 2.5
    per_day           = 100
    at_limit          = "critical"
    critical_priority = 60
  }
  ssh {
    user        = "u"
    port        = 23
    key         = "/k"
    host_keys   = ["x"]
    secret_file = "s"
    config      = "c"
  }
  schedule {
    cron     = "0 8 * * 1-5"
    zone     = "Europe/Berlin"
    duration = "10h"
    min      = 2
  }
  standby {
    cpu    = 500
    memory = 5
    disk   = 7
    count  = 3
  }
  type "c.1" {
    cpu             = 2000
    memory          = 4096
    disk            = 100
    price           = 0.1
    spot_price      = 0.05
    billed_by       = "1h"
    billed_at_least = "2h"
    devices         = { gpu = 1 }
    attributes      = { x = "y" }
    family          = "f"
    quota_group     = "q"
    quota_units     = 4
    interruptions   = 0.1
  }
}`

func TestEachKeyOfAPoolIsRead(t *testing.T) {
	t.Parallel()
	list, err := ParsePools([]byte(wholePool), "x.hcl")
	require.NoError(t, err)
	require.Equal(t, &fleet.Policy{
		Name: "std", Provider: "local", Region: "eu", Zones: []string{"a", "b"}, NodePool: "np", Datacenter: "dc", Spot: fleet.SpotPrefer,
		Image: "img", UserData: "boot", Tags: map[string]string{"a": "b"}, Min: 1, Max: 5, MaxPrice: 3.5, WaitCost: 2,
		Idle: 90 * time.Second, Expire: 24 * time.Hour, BootTimeout: time.Minute, LostTimeout: 2 * time.Minute, AdoptGrace: 3 * time.Minute,
		OrphanGrace: 4 * time.Minute, TerminateAtDead: 5 * time.Minute, Disruption: 0.5, Consolidate: true, SpotSpread: 2,
		BootProbe: "bp", RunProbe: "rp", Limits: drover.Capacity{CPU: 9000, MemoryMB: 90000, DiskMB: 900000},
		Budget:   fleet.Budget{PerHour: 2.5, PerDay: 100, AtLimit: fleet.BudgetCritical, CriticalPriority: 60},
		SSH:      &fleet.SSH{User: "u", Port: 23, Key: "/k", HostKeys: []string{"x"}, SecretFile: "s", Config: "c"},
		Schedule: []fleet.Schedule{{Cron: "0 8 * * 1-5", Zone: "Europe/Berlin", Duration: 10 * time.Hour, Min: 2}},
		Standby:  []fleet.Standby{{Each: drover.Capacity{CPU: 500, MemoryMB: 5, DiskMB: 7}, Count: 3}},
		Types: []fleet.InstanceType{{
			Name: "c.1", Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096, DiskMB: 100}, Price: 0.1, SpotPrice: 0.05,
			Devices: map[string]int{"gpu": 1}, Attributes: map[string]string{"x": "y"}, Family: "f", QuotaGroup: "q", QuotaUnits: 4,
			Billing: fleet.Billing{Granularity: time.Hour, Minimum: 2 * time.Hour}, Interrupted: 0.1,
		}},
	}, list[0])
	require.Equal(t, []string{"PauseCreates", "PauseDestroys", "Retiring"}, unset(list[0]), "all that a file can say was said above")
}

// unset returns the fields of a struct that have their zero value.
func unset(p *fleet.Policy) (names []string) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

func TestWhatIsWrongWithAPoolIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"colour = 1":                             `x.hcl:3,1-7: Unsupported argument; An argument named "colour" is not expected here`,
		"min = \"many\"":                         "x.hcl:3,8-12: Unsuitable value type; Unsuitable value: a number is required",
		"limits {\n gpu = 1\n}":                  `An argument named "gpu" is not expected here`,
		"limits {\n}\nlimits {\n}":               "Duplicate limits block",
		"type \"x\" {\n memory = 1\n price = 1}": `The argument "cpu" is required`,
		"type {\n}":                              "Missing name for type",
		"standby {\n}":                           `The argument "count" is required`,
		"ssh {\n}":                               `The argument "key" is required`,
		"idle = \"soon\"\nexpire = \"-1s\"":      `fleet pool "p": idle: "soon" is no duration such as 90s or 1h; expire: "-1s" is no duration`,
		"type \"x\" {\n cpu = 1\n memory = 1\n price = 1\n billed_by = \"q\"\n}": `type.x.billed_by: "q" is no duration`,
		"schedule {\n cron = \"\"\n min = 1\n duration = \"x\"\n}":               `schedule.duration: "x" is no duration`,
	} {
		said = strings.ReplaceAll(said, "1}", "1\n}")
		_, err := ParsePools([]byte("pool \"p\" {\n provider = \"local\"\n"+said+"\n}\n"), "x.hcl")
		require.Equal(t, drover.Invalid, drover.CodeOf(err), said)
		require.ErrorContains(t, err, want, said)
	}
}

// What a block leaves out is as in the zero policy, whose defaults are filled in.
func TestAShortPoolHasTheDefaults(t *testing.T) {
	t.Parallel()
	list, err := ParsePools([]byte(`{"pool":{"p":{"provider":"l","type":{"t":{"cpu":1,"memory":2,"price":3}}}}}`), "x.json")
	require.NoError(t, err)
	want := &fleet.Policy{
		Name: "p", Provider: "l", Zones: []string{"default"},
		Types: []fleet.InstanceType{{Name: "t", Capacity: drover.Capacity{CPU: 1, MemoryMB: 2}, Price: 3}},
	}
	want.Canonicalize()
	require.Equal(t, want, list[0])
}
