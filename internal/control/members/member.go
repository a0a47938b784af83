package members

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/hashicorp/serf/serf"

	"github.com/drover-project/drover"
)

// Status is how a member is, in the words of Nomad's API.
type Status string

// The statuses.
const (
	Alive   Status = "alive"
	Leaving Status = "leaving" // it said that it goes, and has not gone yet
	Left    Status = "left"    // it said that it goes, or was made to leave
	Failed  Status = "failed"  // it does not answer
)

// Versions are the lowest and the highest version of something that a server understands.
type Versions struct{ Min, Max int }

// Has reports whether the version is one of them. Who announces none has the first one.
func (v Versions) Has(version int) bool { return max(v.Min, 1) <= version && version <= max(v.Max, 1) }

// String returns the versions as text.
func (v Versions) String() string { return fmt.Sprintf("%d to %d", max(v.Min, 1), max(v.Max, 1)) }

// Self is what a server announces.
type Self struct {
	ID         string // never changes
	Name       string // unique in the region; NAME.REGION is unique everywhere
	Region     string
	Datacenter string
	RPCAddr    string // host:port at which the others reach its rpc port
	HTTPAddr   string // host:port or URL of its API
	Cluster    string // id of the cluster that it belongs to; "" while it waits to be joined
	Expect     int    // bootstrap_expect: how many servers begin the cluster; 0 waits to be joined
	NonVoter   bool   // a read replica
	Zone       string // its redundancy zone, if any
	Version    string // the program's
	Protocol   Versions
	Writes     int // version of what its cluster writes, which all its servers read; 0 while it has no cluster
}

// Member is a server as this one sees it.
type Member struct {
	Self
	Gossip string // host:port of its gossip
	Status Status
	Tags   map[string]string // all that it announced, as it is on the wire
}

// FullName is the member's name in gossip, NAME.REGION, which is unique in all regions.
func (s Self) FullName() string { return s.Name + "." + s.Region }

// Tag keys. Those that Nomad's servers have are named as theirs, because its command line prints them.
const (
	tagRole, tagID, tagName, tagRegion, tagDatacenter   = "role", "id", "name", "region", "dc"
	tagRPC, tagPort, tagHTTP, tagCluster, tagExpect     = "rpc_addr", "port", "http_addr", "cluster", "expect"
	tagNonVoter, tagZone, tagBuild, tagProtoMin, tagMax = "nonvoter", "zone", "build", "proto_min", "proto_max"
	tagWrites                                           = "writes"

	role = "drover"
)

// tags returns what the server announces. Empty values are left out, as gossip carries at most 512 bytes of tags.
func (s Self) tags() map[string]string {
	_, port, err := net.SplitHostPort(s.RPCAddr)
	if err != nil {
		port = ""
	}
	all := map[string]string{
		tagRole: role, tagID: s.ID, tagName: s.Name, tagRegion: s.Region, tagDatacenter: s.Datacenter, tagRPC: s.RPCAddr, tagPort: port,
		tagHTTP: s.HTTPAddr, tagCluster: s.Cluster, tagZone: s.Zone, tagBuild: s.Version,
		tagExpect: number(s.Expect), tagProtoMin: number(s.Protocol.Min), tagMax: number(s.Protocol.Max), tagWrites: number(s.Writes),
	}
	if s.NonVoter {
		all[tagNonVoter] = "1"
	}
	for key, value := range all {
		if value == "" {
			delete(all, key)
		}
	}
	return all
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// parse reads what a member announced. Errors: Invalid with the tag's name if the member is no server of Drover's, or
// announces nonsense.
func parse(m serf.Member) (Member, error) {
	t := m.Tags
	if t[tagRole] != role {
		return Member{}, drover.Errorf(drover.Invalid, "member %q is no server of drover: tag role is %q", m.Name, t[tagRole])
	}
	out := Member{
		Self: Self{
			ID: t[tagID], Name: t[tagName], Region: t[tagRegion], Datacenter: t[tagDatacenter], RPCAddr: t[tagRPC], HTTPAddr: t[tagHTTP],
			Cluster: t[tagCluster], NonVoter: t[tagNonVoter] == "1", Zone: t[tagZone], Version: t[tagBuild],
		},
		Gossip: net.JoinHostPort(m.Addr.String(), strconv.Itoa(int(m.Port))),
		Status: Status(m.Status.String()),
		Tags:   t,
	}
	for key, to := range map[string]*int{
		tagExpect: &out.Expect, tagProtoMin: &out.Protocol.Min, tagMax: &out.Protocol.Max, tagWrites: &out.Writes,
	} {
		n, err := strconv.Atoi(cmp.Or(t[key], "0"))
		if err != nil || n < 0 {
			return Member{}, drover.Errorf(drover.Invalid, "member %q: tag %s must be a number, got %q", m.Name, key, t[key])
		}
		*to = n
	}
	if out.ID == "" || out.Name == "" || out.Region == "" || out.FullName() != m.Name {
		return Member{}, drover.Errorf(drover.Invalid, "member %q announces id %q, name %q, region %q", m.Name, out.ID, out.Name, out.Region)
	}
	return out, nil
}

// sorted orders members by region and name.
func sorted(list []Member) []Member {
	slices.SortFunc(list, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	return list
}
