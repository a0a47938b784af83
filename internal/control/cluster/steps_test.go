package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

func server(id string, change ...func(*members.Member)) members.Member {
	m := members.Member{Self: members.Self{ID: id, Name: id, Region: "global", RPCAddr: id + ":1", Expect: 3}, Status: members.Alive}
	for _, f := range change {
		f(&m)
	}
	return m
}

func status(s members.Status) func(*members.Member) { return func(m *members.Member) { m.Status = s } }
func expect(n int) func(*members.Member)            { return func(m *members.Member) { m.Expect = n } }
func of(cluster string) func(*members.Member)       { return func(m *members.Member) { m.Cluster = cluster } }
func region(r string) func(*members.Member)         { return func(m *members.Member) { m.Region = r } }
func at(address string) func(*members.Member)       { return func(m *members.Member) { m.RPCAddr = address } }
func replica(m *members.Member)                     { m.NonVoter = true }
func reads(low, high int) func(*members.Member) {
	return func(m *members.Member) { m.Protocol = members.Versions{Min: low, Max: high} }
}

func TestWhatAllServersRead(t *testing.T) {
	t.Parallel()
	peers := []raftlog.Peer{{ID: "a", Address: "a:1", Voter: true}, {ID: "b", Address: "b:1", Voter: true}, {ID: "c", Address: "c:1"}}
	a, b, c := server("a", reads(1, 3), of("ours")), server("b", reads(1, 3), of("ours")), server("c", reads(2, 4))
	for name, test := range map[string]struct {
		list []members.Member
		want int
		why  string
	}{
		"all":                   {[]members.Member{a, b, c}, 3, "this program reads no higher one"},
		"a replica cannot":      {[]members.Member{a, b, server("c", replica, reads(1, 2))}, 2, "server c reads versions 1 to 2"},
		"one says nothing":      {[]members.Member{a, b, server("c")}, 1, "server c reads versions 1 to 1"},
		"a failed one cannot":   {[]members.Member{a, server("b", status(members.Failed)), c}, 1, "server b reads versions 1 to 1"},
		"one that waits cannot": {[]members.Member{a, b, c, server("d", reads(1, 2))}, 2, "server d reads versions 1 to 2"},
		"unknown":               {[]members.Member{a, b}, 1, "nobody knows what server c reads"},
		"left":                  {[]members.Member{a, b, c, server("d", status(members.Left))}, 3, ""},
		"another region's":      {[]members.Member{a, b, c, server("d", region("far"))}, 3, ""},
		"another cluster's":     {[]members.Member{a, b, c, server("d", of("theirs"))}, 3, ""},
	} {
		got, why := readable(a.Self, peers, concerned(a.Self, "ours", peers, test.list))
		require.Equal(t, test.want, got, name)
		require.Contains(t, why, test.why, name)
	}
	self := a.Self
	self.Writes = 3
	require.Empty(t, steps(self, "ours", peers[:2], []members.Member{a, b, server("d"), server("e", reads(4, 5))}), "they cannot read the log")
	require.Len(t, steps(self, "ours", peers[:2], []members.Member{a, b, c}), 1)
}

func TestWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list []members.Member // the first is this server
		why  string           // "" = it is its turn
	}{
		"alone":             {[]members.Member{server("a", expect(1))}, ""},
		"waits":             {[]members.Member{server("a", expect(0))}, "waiting to be joined"},
		"replica":           {[]members.Member{server("a", replica)}, "read replicas"},
		"too few":           {[]members.Member{server("a"), server("b")}, "fewer servers"},
		"a failed one":      {[]members.Member{server("a"), server("b"), server("c", status(members.Failed))}, "fewer servers"},
		"a replica":         {[]members.Member{server("a"), server("b"), server("c", replica)}, "fewer servers"},
		"another region":    {[]members.Member{server("a"), server("b"), server("c", region("far"))}, "fewer servers"},
		"first":             {[]members.Member{server("a"), server("b"), server("c")}, ""},
		"not first":         {[]members.Member{server("b"), server("a"), server("c")}, "server a begins"},
		"first failed":      {[]members.Member{server("b"), server("a", status(members.Failed)), server("c"), server("d")}, "server a begins"},
		"first left":        {[]members.Member{server("b"), server("a", status(members.Left)), server("c"), server("d")}, ""},
		"there is one":      {[]members.Member{server("a"), server("b", of("x")), server("c")}, "belongs to a cluster"},
		"another number":    {[]members.Member{server("a"), server("b", expect(5)), server("c")}, "another bootstrap_expect"},
		"some wait":         {[]members.Member{server("a"), server("b", expect(0)), server("c", expect(0))}, ""},
		"far one has a one": {[]members.Member{server("a"), server("b"), server("c"), server("z", region("far"), of("x"))}, ""},
	} {
		turn, why := turn(c.list[0].Self, c.list)
		require.Equal(t, c.why == "", turn, name)
		require.Contains(t, why, c.why, name)
	}
}

func TestWhoSucceedsASickLeader(t *testing.T) {
	t.Parallel()
	answer := func(index uint64, sick string) Status {
		return Status{Progress: raftlog.Progress{LastIndex: index, Sick: sick}}
	}
	for want, answers := range map[string]map[string]Status{
		"":  {"a": answer(9, "full")},
		"b": {"a": answer(9, "full"), "b": answer(1, "")},
		"c": {"b": answer(1, ""), "c": answer(2, ""), "d": answer(2, "")},
	} {
		require.Equal(t, want, fittest(answers))
	}
	peers := []raftlog.Peer{{ID: "a", Voter: true}, {ID: "b", Voter: true}, {ID: "c"}, {ID: "d", Voter: true}, {ID: "e", Voter: true}}
	list := []members.Member{
		server("a"), server("b"), server("c"), server("d", status(members.Failed)), server("e", region("far")), server("f"),
	}
	require.Equal(t, list[1:2], voters(list[0].Self, peers, list))
	require.Empty(t, fittest(nil))
}

func TestSteps(t *testing.T) {
	t.Parallel()
	voter := func(id string) raftlog.Peer { return raftlog.Peer{ID: id, Address: id + ":1", Voter: true} }
	plain := func(id string) raftlog.Peer { return raftlog.Peer{ID: id, Address: id + ":1"} }
	for name, c := range map[string]struct {
		peers []raftlog.Peer
		list  []members.Member
		want  string
	}{
		"nothing to do": {[]raftlog.Peer{voter("a")}, []members.Member{server("a")}, "[]"},
		"the first ones": {[]raftlog.Peer{voter("a")}, []members.Member{
			server("a"), server("b"), server("c"), server("d"),
		}, "[add voter b b:1] [add voter c c:1] [add non-voter d d:1]"},
		"a replica": {[]raftlog.Peer{voter("a")}, []members.Member{server("a"), server("b", replica)}, "[add non-voter b b:1]"},
		"a later one": {[]raftlog.Peer{voter("a"), voter("b"), voter("c")}, []members.Member{
			server("a"), server("d", expect(0)),
		}, "[add non-voter d d:1]"},
		"another region":  {[]raftlog.Peer{voter("a")}, []members.Member{server("a"), server("b", region("far"))}, "[]"},
		"another cluster": {[]raftlog.Peer{voter("a")}, []members.Member{server("a"), server("b", of("other"))}, "[]"},
		"of ours":         {[]raftlog.Peer{voter("a")}, []members.Member{server("a"), server("b", of("ours"))}, "[add voter b b:1]"},
		"failed":          {[]raftlog.Peer{voter("a"), voter("b")}, []members.Member{server("a"), server("b", status(members.Failed))}, "[]"},
		"failed and new":  {[]raftlog.Peer{voter("a")}, []members.Member{server("a"), server("b", status(members.Failed))}, "[]"},
		"left": {[]raftlog.Peer{voter("a"), voter("b")}, []members.Member{
			server("a"), server("b", status(members.Left)),
		}, "[remove b b:1]"},
		"left itself": {[]raftlog.Peer{voter("a"), voter("b")}, []members.Member{server("a", status(members.Left)), server("b")}, "[]"},
		"unknown":     {[]raftlog.Peer{voter("a"), voter("b")}, []members.Member{server("a")}, "[]"},
		"moved": {[]raftlog.Peer{voter("a"), voter("b")}, []members.Member{
			server("a"), server("b", at("b:2")),
		}, "[add voter b b:2]"},
		"moved without vote": {[]raftlog.Peer{voter("a"), plain("b")}, []members.Member{
			server("a"), server("b", at("b:2")),
		}, "[add non-voter b b:2]"},
		"moved itself": {[]raftlog.Peer{voter("a")}, []members.Member{server("a", at("a:2"))}, "[add voter a a:2]"},
		"replaced": {[]raftlog.Peer{voter("a"), voter("b"), voter("c")}, []members.Member{
			server("a"), server("b", status(members.Failed)), server("n", at("b:1")),
		}, "[remove b b:1] [add non-voter n b:1]"},
		"replaced, unknown": {[]raftlog.Peer{voter("a"), voter("b"), voter("c")}, []members.Member{
			server("a"), server("n", at("b:1")),
		}, "[remove b b:1] [add non-voter n b:1]"},
		"no address": {[]raftlog.Peer{voter("a")}, []members.Member{server("a"), server("b", at(""))}, "[]"},
		"one left, one came": {[]raftlog.Peer{voter("a"), voter("b"), voter("c")}, []members.Member{
			server("a"), server("b", status(members.Left)), server("c"), server("d"),
		}, "[remove b b:1] [add voter d d:1]"},
	} {
		got := ""
		for _, s := range steps(server("a").Self, "ours", c.peers, c.list) {
			got += fmt.Sprintf(" [%s %s %s]", s.what, s.id, s.address)
		}
		if got == "" {
			got = " []"
		}
		require.Equal(t, " "+c.want, got, name)
	}
}

// Whatever the servers are like, carrying the steps out leaves nothing to do, keeps the leader, and adds no more voters than
// the first servers.
func TestStepsComeToRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		self := server("a", expect(rapid.SampledFrom([]int{0, 1, 3, 5}).Draw(t, "expect")))
		list := []members.Member{self}
		for _, id := range []string{"b", "c", "d", "e", "f"}[:rapid.IntRange(0, 5).Draw(t, "members")] {
			m := server(id, status(rapid.SampledFrom([]members.Status{members.Alive, members.Failed, members.Left}).Draw(t, "status")),
				of(rapid.SampledFrom([]string{"", "ours", "other"}).Draw(t, "cluster")), at(
					rapid.SampledFrom([]string{id + ":1", id + ":2", "b:1"}).Draw(t, "address"),
				))
			m.NonVoter = rapid.Bool().Draw(t, "replica")
			list = append(list, m)
		}
		peers := map[string]raftlog.Peer{"a": {ID: "a", Address: "a:1", Voter: true}}
		for _, id := range []string{"b", "c", "d", "x"} {
			if rapid.Bool().Draw(t, "in") {
				peers[id] = raftlog.Peer{ID: id, Address: id + ":1", Voter: rapid.Bool().Draw(t, "voter")}
			}
		}
		slice := func() (out []raftlog.Peer) {
			for _, p := range peers {
				out = append(out, p)
			}
			return out
		}
		for round := 0; ; round++ {
			list := steps(self.Self, "ours", slice(), list)
			if len(list) == 0 {
				break
			}
			require.Less(t, round, 5)
			for _, s := range list {
				switch s.what {
				case remove:
					require.NotEqual(t, "a", s.id)
					delete(peers, s.id)
				default:
					peers[s.id] = raftlog.Peer{ID: s.id, Address: s.address, Voter: s.what == addVoter || peers[s.id].Voter}
				}
			}
		}
		require.True(t, peers["a"].Voter)
	})
}
