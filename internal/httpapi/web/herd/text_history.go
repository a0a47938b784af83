package herd

// historyText is the texts of how things were.
var historyText = struct {
	History, None, Fill, Claims, Starts, FirstBytes, Size, Warm, Claimed, Waiting string

	FillColumns, LatencyColumns []string
}{
	History: "How it was", Fill: "Fill of the pool", Claims: "How long claims took", Starts: "How long starts of commands took",
	FirstBytes: "How long the first output of commands took",
	None:       "Nothing is kept of that time: the server may have been started anew.",
	Size:       "Size", Warm: "Warm, the least", Claimed: "Claimed, the most", Waiting: "Claims that wait, the most",

	FillColumns:    []string{"", "Least", "Most", "Last"},
	LatencyColumns: []string{"Count", "p50", "p95", "p99"},
}
