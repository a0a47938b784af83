package web

// clusterText is the texts of the pages about what the cluster itself is made of.
var clusterText = struct {
	Servers, Consensus, Gossip, Healthy, Unhealthy, UnhealthyMore, Judgement, Tolerance, Leader, Voters, Voter, NoVoter, NoServers string

	ConsensusColumns, GossipColumns []string
}{
	Servers: "Servers", Consensus: "Consensus (Raft)", Gossip: "Members (gossip)",
	Healthy: "healthy", Unhealthy: "unhealthy", Judgement: "Health", Tolerance: "May fail at once without an outage", Leader: "leader",
	Voters: "Voters", Voter: "voter", NoVoter: "no voter", NoServers: "No server is known here.",
	UnhealthyMore: "A server is unhealthy, or there are too few. The table says which; `drover monitor -server-id NAME` follows its log.",

	ConsensusColumns: []string{"Server", "Health", "Role", "Since (UTC)", "Heard of the leader before", "Term", "Index", "Version", "Address"},
	GossipColumns:    []string{"Member", "Status", "Address", "Region", "Datacenter", "Build"},
}
