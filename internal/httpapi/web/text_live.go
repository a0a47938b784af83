package web

// liveText is the texts of what keeps pages up to date.
var liveText = struct{ Live, Paused, Lost, Polls, TooManyViewers, Started string }{
	Live: "Live", Paused: "Paused", Lost: "No connection: as of", Polls: "Looks each 10 seconds",
	TooManyViewers: "too many pages are open: close some, or wait",
	Started:        "Started (UTC)",
}
