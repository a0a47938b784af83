package herd

// overviewText is the texts of the overview.
var overviewText = struct {
	Overview, Attention, AllWell, Since, NoAreas, NoAreasMore, Fills, FillsMore, Waited string
	Areas, States                                                                       map[string]string
}{
	Overview: "Overview", Attention: "Attention (%d)", AllWell: "Nothing wants attention.", Since: "since",
	Fills: "How pools were filled in the last hour", FillsMore: "All environments: %d more", Waited: "Claims waited: %d at once.",
	NoAreas: "Your token may see nothing of the cluster here", NoAreasMore: "It needs a right to read jobs, runners, nodes, " +
		"the fleet or the operator's part. The pages above show what it may see.",

	Areas: map[string]string{
		"servers": "Servers", "nodes": "Nodes", "evaluations": "Evaluations", "deployments": "Deployments", "environments": "Environments",
		"fleet": "Fleet", "volumes": "Volumes",
	},
	States: map[string]string{"ok": "well", "weak": "weak", "broken": "broken"},
}
