package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const gossipKey = "MDEyMzQ1Njc4OWFiY2RlZg==" // 16 bytes

func TestWhatIsRefusedOfServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		over *Agent
		want string // "": it is taken
	}{
		"three":          {&Agent{Server: &Server{BootstrapExpect: new(3)}}, ""},
		"none":           {&Agent{Server: &Server{BootstrapExpect: new(0)}}, ""},
		"two":            {&Agent{Server: &Server{BootstrapExpect: new(2)}}, "two servers stand still"},
		"four":           {&Agent{Server: &Server{BootstrapExpect: new(4)}}, "bears no more failures than 3"},
		"nine":           {&Agent{Server: &Server{BootstrapExpect: new(9)}}, "server.bootstrap_expect: must be 0, 1, 3, 5 or 7, got 9"},
		"negative":       {&Agent{Server: &Server{BootstrapExpect: new(-1)}}, "server.bootstrap_expect: must be"},
		"a key":          {&Agent{Server: &Server{Encrypt: gossipKey}}, ""},
		"a short key":    {&Agent{Server: &Server{Encrypt: "AAAA"}}, "server.encrypt: must be base64 of 16, 24 or 32 bytes"},
		"no host":        {&Agent{Server: &Server{RetryJoin: []string{":4648"}}}, "server.retry_join: "},
		"negative tries": {&Agent{Server: &Server{ServerJoin: &ServerJoin{RetryMax: -1}}}, "server.retry_max: "},
		"an interval":    {&Agent{Server: &Server{ServerJoin: &ServerJoin{RetryInterval: "x"}}}, "server.server_join.retry_interval: "},
		"a ttl":          {&Agent{Server: &Server{FailoverHeartbeatTTL: "x"}}, "server.failover_heartbeat_ttl: "},
		"a quorum":       {&Agent{Autopilot: &Autopilot{MinQuorum: -1}}, "autopilot.min_quorum: "},
		"a threshold":    {&Agent{Autopilot: &Autopilot{LastContactThreshold: "x"}}, "autopilot.last_contact_threshold: "},
		"open gossip": {
			&Agent{Addresses: &Addresses{Serf: "0.0.0.0"}}, "addresses.serf: the servers' gossip on 0.0.0.0 lacks server.encrypt",
		},
		"open gossip with a key": {&Agent{Addresses: &Addresses{Serf: "0.0.0.0"}, Server: &Server{Encrypt: gossipKey}}, ""},
	} {
		err := Merge(valid(), c.over).Validate()
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
	}
}

// A lone server has nothing to do with others, until somebody says anything about them.
func TestWhoIsClustered(t *testing.T) {
	t.Parallel()
	require.False(t, valid().Clustered())
	require.Equal(t, 1, valid().Expect())
	joins := Merge(valid(), &Agent{Server: &Server{RetryJoin: []string{"a"}}})
	require.Zero(t, joins.Expect(), "who joins others begins no cluster")
	require.Equal(t, 3, Merge(joins, &Agent{Server: &Server{BootstrapExpect: new(3)}}).Expect())
	require.Equal(t, "127.0.0.1:4648", valid().SerfAddress())
	for _, over := range []*Agent{
		{Server: &Server{BootstrapExpect: new(0)}},
		{Server: &Server{Encrypt: gossipKey}},
		{Server: &Server{StartJoin: []string{"a"}}},
		{Server: &Server{ServerJoin: &ServerJoin{RetryJoin: []string{"a"}}}},
		{Ports: &Ports{Serf: 4648}},
		{Server: &Server{NonVoter: new(true)}},
		{Advertise: &Addresses{Serf: "127.0.0.1"}},
	} {
		require.True(t, Merge(valid(), over).Clustered())
	}
	node := Merge(Default(), &Agent{Ports: &Ports{Serf: 4648}})
	require.False(t, node.Clustered(), "it is no server")
}

func TestJoinReadsBothPlaces(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`
server {
  enabled            = true
  bootstrap_expect   = 3
  retry_join         = ["a"]
  retry_interval     = "2s"
  rejoin_after_leave = true
  server_join {
    retry_join = ["b:1"]
    retry_max  = 4
  }
}
leave_on_terminate = true
autopilot {
  cleanup_dead_servers = false
}
`), "a.hcl")
	require.NoError(t, err)
	require.Empty(t, a.Ignored)
	require.Equal(t, []string{"a:4648", "b:1"}, a.Server.Join())
	most, every := a.Server.JoinTries()
	require.Equal(t, 4, most)
	require.Equal(t, 2*time.Second, every)
	require.Equal(t, 5*time.Minute, a.Server.FailoverTTL())
	require.False(t, *a.Autopilot.Cleanup)
}
