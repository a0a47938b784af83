package config

import (
	"cmp"
	"encoding/base64"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/optional"
)

// Autopilot is how servers are kept healthy until somebody changes it over the API.
type Autopilot struct {
	Cleanup *bool `hcl:"cleanup_dead_servers,optional"` // remove servers that failed, while the others are a quorum; default true
	// a server that the leader did not reach for longer is unhealthy; duration; default 200ms
	LastContactThreshold string `hcl:"last_contact_threshold,optional"`
	MaxTrailingLogs      *int   `hcl:"max_trailing_logs,optional"` // a server that is more entries behind is unhealthy; default 250
	MinQuorum            int    `hcl:"min_quorum,optional"`        // never remove servers below so many voters; default 0
	// how long a new server is healthy before it may vote; duration; default 10s
	StabilizationTime string   `hcl:"server_stabilization_time,optional"`
	Zones             *bool    `hcl:"enable_redundancy_zones,optional"`   // one voter in each redundancy_zone; default false
	NoMigration       *bool    `hcl:"disable_upgrade_migration,optional"` // accepted without an effect: servers are not migrated by version
	CustomUpgrades    *bool    `hcl:"enable_custom_upgrades,optional"`    // accepted without an effect
	Rest              hcl.Body `hcl:",remain" json:"-"`
}

// Ports and times of servers among each other, where nobody says otherwise.
const (
	serfPort             = 4648
	retryInterval        = 30 * time.Second
	failoverHeartbeatTTL = 5 * time.Minute
)

// Expect is how many servers begin the cluster; 0 waits to be joined, as who names servers to join does unless it says otherwise.
func (a *Agent) Expect() int {
	switch {
	case a.Server.BootstrapExpect != nil:
	case len(a.Server.Join()) > 0:
		return 0
	default:
		return 1
	}
	return *a.Server.BootstrapExpect
}

// Clustered reports whether this server speaks with others, or lets them join. A lone one opens no port for that.
func (a *Agent) Clustered() bool {
	s := a.Server
	own, advertised := cmp.Or(a.Addresses, &Addresses{}), cmp.Or(a.Advertise, &Addresses{})
	return optional.Value(s.Enabled) && (a.Expect() != 1 || s.Encrypt != "" || len(s.Join()) > 0 || optional.Value(s.NonVoter) ||
		a.Ports.Serf != 0 || own.Serf != "" || advertised.Serf != "")
}

// Authority is the region that this one follows in what regions share; "" if it follows none.
func (a *Agent) Authority() string {
	if a.Server.AuthoritativeRegion == a.Region {
		return ""
	}
	return a.Server.AuthoritativeRegion
}

// SerfAddress is where the servers' gossip listens.
func (a *Agent) SerfAddress() string { return a.address("serf", cmp.Or(a.Ports.Serf, serfPort)) }

// Join are the addresses of other servers' gossip, host:port.
func (s *Server) Join() (out []string) {
	j := cmp.Or(s.ServerJoin, &ServerJoin{})
	for _, address := range slices.Concat(s.RetryJoin, s.StartJoin, j.RetryJoin, j.StartJoin) {
		out = append(out, SerfTarget(address))
	}
	return out
}

// SerfTarget adds the default port of gossip to an address that names none.
func SerfTarget(address string) string {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return net.JoinHostPort(address, strconv.Itoa(serfPort))
	}
	return address
}

// JoinTries is how often the servers of Join are tried, 0 = without end, and the time between two tries.
func (s *Server) JoinTries() (most int, interval time.Duration) {
	j := cmp.Or(s.ServerJoin, &ServerJoin{})
	return cmp.Or(s.RetryMax, j.RetryMax), Duration(cmp.Or(s.RetryInterval, j.RetryInterval), retryInterval)
}

// Snapshots has the leading server save the state into files, as "drover operator snapshot save" does.
type Snapshots struct {
	Interval string   `hcl:"interval,optional"` // time between two; duration; default 1h
	Keep     *int     `hcl:"keep,optional"`     // files that stay, at least 1; default 24
	Folder   string   `hcl:"folder,optional"`   // where they are, better on another disk; path; default: snapshots in data_dir
	Encrypt  *bool    `hcl:"encrypt,optional"`  // encrypt these, and what is saved otherwise, for the keyring's key; default false
	Rest     hcl.Body `hcl:",remain" json:"-"`
}

// Encrypted reports whether archives are encrypted that nobody asks that of.
func (s *Snapshots) Encrypted() bool { return s != nil && s.Encrypt != nil && *s.Encrypt }

// Schedule is how often the state is saved into files, and how many stay. Only of a server that has Snapshots.
func (s *Snapshots) Schedule() (every time.Duration, keep int) {
	keep = snapshotsKept
	if s.Keep != nil {
		keep = *s.Keep
	}
	return Duration(s.Interval, snapshotInterval), keep
}

// Defaults of server.snapshots.
const (
	snapshotInterval = time.Hour
	snapshotsKept    = 24
)

// FailoverTTL is how long a new leader waits for nodes before it calls them lost.
func (s *Server) FailoverTTL() time.Duration {
	return Duration(s.FailoverHeartbeatTTL, failoverHeartbeatTTL)
}

// clusterProblems are those of what servers need to find each other.
func (a *Agent) clusterProblems(p *problems) {
	s := a.Server
	if s.Snapshots != nil {
		every, keep := s.Snapshots.Schedule()
		p.check(every > 0, "server.snapshots.interval", "must be above 0, got %s", every)
		p.check(keep > 0, "server.snapshots.keep", "must be at least 1, got %d", keep)
	}
	switch n := a.Expect(); {
	case n == 2:
		p.check(false, "server.bootstrap_expect", "must be 0, 1, 3, 5 or 7, got 2: two servers stand still when either of them fails")
	case n > 0 && n%2 == 0:
		p.check(false, "server.bootstrap_expect", "must be 0, 1, 3, 5 or 7, got %d: it bears no more failures than %d", n, n-1)
	default:
		p.check(n >= 0 && n <= 7, "server.bootstrap_expect", "must be 0, 1, 3, 5 or 7, got %d", n)
	}
	if s.Encrypt != "" {
		key, err := base64.StdEncoding.DecodeString(s.Encrypt)
		p.check(err == nil && slices.Contains([]int{16, 24, 32}, len(key)), "server.encrypt",
			"must be base64 of 16, 24 or 32 bytes (make one with: head -c 32 /dev/urandom | base64)")
	}
	most, _ := s.JoinTries()
	p.check(most >= 0, "server.retry_max", "must not be negative, got %d", most)
	if r := s.AuthoritativeRegion; r != "" && r != a.Region && optional.Value(s.Enabled) {
		p.check(a.Clustered(), "server.authoritative_region",
			"names another region, but this server speaks with no other: set server.encrypt, ports.serf or retry_join")
	}
	for _, address := range s.Join() {
		host, _, err := net.SplitHostPort(address)
		p.check(!strings.Contains(address, "="), "server.retry_join", "%q: servers are not looked up in a cloud; want host or host:port", address)
		p.check(err == nil && host != "", "server.retry_join", "%q is no host or host:port", address)
	}
	if t := a.Autopilot; t != nil {
		p.check(t.MinQuorum >= 0, "autopilot.min_quorum", "must not be negative, got %d", t.MinQuorum)
		p.check(t.MaxTrailingLogs == nil || *t.MaxTrailingLogs >= 0, "autopilot.max_trailing_logs", "must not be negative")
	}
}
