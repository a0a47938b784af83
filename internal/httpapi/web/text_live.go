package web

// liveText is the texts of what keeps pages up to date.
var liveText = struct{ Live, Connected, Paused, Lost, Slow, Polls, Unsent, TooManyViewers, Started string }{
	Live: "Live", Connected: "Connected", Paused: "Paused", Lost: "No connection: as of", Slow: "The server is slow: as of",
	Polls:          "Looks each 10 seconds",
	Unsent:         "No connection: nothing was sent, and what you typed is still here. Send it when it is back.",
	TooManyViewers: "too many pages are open: close some, or wait",
	Started:        "Started",
}
