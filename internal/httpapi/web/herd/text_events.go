package herd

// eventText is the texts of the page of events.
var eventText = struct {
	Events, Topic, AllTopics, Key, Namespace, Find, Pause, NoScript, Follows, Lost, Missed, Many string

	Columns []string
}{
	Events: "Events", Topic: "Topic", AllTopics: "all", Key: "Id (job, node, environment …)", Namespace: "Namespace", Find: "Find",
	Pause:    "Pause",
	NoScript: "This page needs JavaScript. `drover event stream` prints the same.",
	Follows:  "Follows what happens; the newest 500 are kept here.", Lost: "No connection: it is tried again.",
	Missed: "Some events were missed: they are no longer kept. It goes on with what comes.", Many: "%d events a second: not all are shown.",
	Columns: []string{"Index", "Topic", "What", "Namespace", "Id"},
}
