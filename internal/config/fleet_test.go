package config

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/config/machines"
)

const fleetText = `
fleet {
  provider "local" { 
    type = "loopback" 
  }
  pool "std" {
    provider  = "local"
    zones     = ["a", "b"]
    node_pool = "default"
    min       = 1
    max       = 5
    idle      = "90s"
    user_data = "${config} and ${token}"
    limits { 
      cpu = 9000 
    }
    budget {
      per_hour = 2.5
      at_limit = "alert"
    }
    schedule {
      cron     = "0 8 * * 1-5"
      zone     = "Europe/Berlin"
      duration = "10h"
      min      = 2
    }
    standby {
      cpu   = 500
      count = 3
    }
    type "c.1" {
      cpu       = 2000
      memory    = 4096
      price     = 0.1
      billed_by = "1h"
      devices   = { gpu = 1 }
    }
  }
}`

func TestFleetPoolsAreRead(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(fleetText), "x.hcl")
	require.NoError(t, err)
	p, err := a.Fleet.Pools[0].Policy()
	require.NoError(t, err)
	require.Equal(t, "${config} and ${token}", p.UserData, "what it stands for is known when a machine is made")
	require.Equal(t, 90*time.Second, p.Idle)
	require.Equal(t, fleet.Budget{PerHour: 2.5, AtLimit: "alert"}, p.Budget)
	require.Equal(t, []fleet.Schedule{{Cron: "0 8 * * 1-5", Zone: "Europe/Berlin", Duration: 10 * time.Hour, Min: 2}}, p.Schedule)
	require.Equal(t, []fleet.Standby{{Each: drover.Capacity{CPU: 500}, Count: 3}}, p.Standby)
	require.Equal(t, int64(9000), p.Limits.CPU)
	typ := p.Types[0]
	require.Equal(t, time.Hour, typ.Billing.Granularity)
	require.Equal(t, map[string]int{"gpu": 1}, typ.Devices)
	require.Len(t, p.Offerings(), 2)

	list, err := machines.ParsePools([]byte(fleetText), "x.hcl")
	require.NoError(t, err)
	require.Equal(t, p, list[0])
	list, err = machines.ParsePools([]byte(`{"pool":{"std":{"provider":"local","type":{"t":{"cpu":1,"memory":1,"price":1}}}}}`), "x.json")
	require.NoError(t, err)
	require.Equal(t, []string{"default"}, list[0].Zones)
	require.Equal(t, "std", list[0].NodePool)
}

func TestBadFleetsAreRefusedWithTheirKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`fleet { 
  provider "x" {} 
}`: "fleet.provider.x.type: must be loopback, docker or ec2",
		`fleet { 
  provider "ec2" {} 
}`: "fleet.provider.ec2.region: must be set",
		`
server {
  enabled          = true
  bootstrap_expect = 3
}
fleet {
  provider "loopback" {}
}`: "fleet.provider.loopback.dir: must be set where there are several servers",
		`fleet {
  pool "p" {
    provider = "nobody"
    type "t" {
      cpu = 1
      memory = 1
      price = 1
    }
  }
}`: `there is no provider "nobody"`,
		`fleet {
  provider "loopback" {}
  pool "p" {
    provider = "loopback"
    idle     = "soon"
    min      = 3
    max      = 2
  }
}`: `idle: "soon" is no duration`,
		`fleet {
  provider "loopback" {}
  pool "p" {
    provider = "loopback"
    min      = 3
    max      = 2
  }
}`: "Max: must be at least Min (3), got 2",
		`fleet {
  provider "loopback" {}
  pool "p" {
    provider = "loopback"
    region   = "eu"
    type "t" {
      cpu = 1
      memory = 1
      price = 1
    }
  }
}`: `fleet.pool.p.region: is "eu", but provider "loopback" has ""`,
	} {
		file, err := Parse([]byte(text), "x.hcl")
		require.NoError(t, err, text)
		a := Merge(Default(), file)
		a.Server.Enabled, a.DataDir = new(true), "/x"
		err = a.Validate()
		require.Equal(t, drover.Invalid, drover.CodeOf(err), text)
		require.ErrorContains(t, err, want)
	}
	_, err := Parse([]byte("fleet {\n  colour = 1\n}\n"), "x.hcl")
	require.ErrorContains(t, err, "x.hcl:2")
	_, err = machines.ParsePools([]byte("data_dir = \"/x\"\n"), "x.hcl")
	require.ErrorContains(t, err, "no pool block")
}

func TestAPoolIsShownAsItWasWritten(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(fleetText), "x.hcl")
	require.NoError(t, err)
	text, err := json.Marshal(a.Fleet.Pools[0])
	require.NoError(t, err)
	for _, part := range []string{`"Name":"std"`, `"Idle":"90s"`, `"Limits":{"CPU":9000`, `"Name":"c.1","CPU":2000`, `"Granularity":"1h"`} {
		require.Contains(t, string(text), part)
	}
	require.NotContains(t, string(text), "PauseCreates")
}
