package herd

import (
	"net/http"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/fleetview"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/policy"
)

// Site is the page of which these are part.
type Site interface {
	// Ask reads what the API has at a path, as the viewer. Errors: *httpapi.StatusError.
	Ask(r *http.Request, path string, out any) error
	// Follow gives what the API answers as it comes. Errors: those of Ask, and those of to.
	Follow(r *http.Request, path string, to func([]byte) error) error
	// Show answers with a page, or with what the API said instead.
	Show(w http.ResponseWriter, r *http.Request, title string, body html.Part, err error) error
	// Write answers with a page that has a script, unless that is "".
	Write(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part, module string) error
	// Stream answers with what run sends as it comes; a viewer that takes nothing for patience is cut. There is a bound for each viewer.
	Stream(w http.ResponseWriter, r *http.Request, contentType string, patience time.Duration, run func(send func([]byte) error) error) error
	// Socket answers with a websocket of the API. There is a bound for each viewer.
	Socket(w http.ResponseWriter, r *http.Request, path string) error
	// Download answers with what the API has, as a file to be stored.
	Download(w http.ResponseWriter, r *http.Request, path, name string) error
	// Send asks the API with a body, of JSON unless in is an io.Reader of bytes; the answer is read into out unless that is nil. Errors:
	// those of Ask.
	Send(r *http.Request, method, path string, in, out any) error
	Words
}

// Words is what several pages say.
type Words interface {
	Failed(r *http.Request, err error) html.Part // what went wrong, and what to do
	SignIn(r *http.Request) html.Part            // where to sign in otherwise
	Receipt(r *execution.Receipt) html.Part
	Cause(c execution.Cause) string
	// Terminal is the form that opens one, which wire says how to reach, and its screen.
	Terminal(from html.URL, wire string, pick html.Part, line string) html.Part
	Tabs(r *http.Request, label string, names []string, to []html.URL) html.Part
	// May reports whether the viewer has all of the capabilities in the namespace, as far as that is known.
	May(r *http.Request, namespace string, all ...policy.Capability) bool
	// Confirm asks whether to do what was asked for; question has the name of what it is about in %s.
	Confirm(at, back html.URL, what, question, button string, fields ...html.Part) html.Part
}

// Pages serves them.
type Pages struct{ Site }

// Routes are theirs; where they are answered and what they need is the same for all of the page.
func (h *Pages) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /ui/{$}", Handle: h.overview},
		{Pattern: "GET /ui/environments", Handle: h.environments},
		{Pattern: "GET /ui/environments/{environment}", Handle: h.environment},
		{Pattern: "POST /ui/environments/{environment}/{action}", Handle: h.environmentAction, MaxBody: 64 << 10},
		{Pattern: "GET /ui/runners", Handle: h.runners},
		{Pattern: "GET /ui/runners/{runner}", Handle: h.runner},
		{Pattern: "GET /ui/runners/{runner}/files", Handle: h.runnerFiles},
		{Pattern: "POST /ui/runners/{runner}/files", Handle: h.runnerUpload, MaxBody: -1},
		{Pattern: "GET /ui/runners/{runner}/files/raw", Handle: h.runnerFile, Stream: true},
		{Pattern: "GET /ui/runners/{runner}/terminal", Handle: h.runnerTerminal},
		{Pattern: "GET /ui/runners/{runner}/terminal/live", Handle: h.runnerTerminalLive, Stream: true},
		{Pattern: "POST /ui/runners/{runner}/{action}", Handle: h.runnerAction, MaxBody: 64 << 10},
		{Pattern: "GET /ui/executions/{execution}", Handle: h.execution},
		{Pattern: "POST /ui/executions/{execution}/{action}", Handle: h.executionAction, MaxBody: 64 << 10},
		{Pattern: "GET /ui/executions/{execution}/live", Handle: h.executionLive, Stream: true},
		{Pattern: "GET /ui/executions/{execution}/timeline", Handle: h.executionTimeline},
		{Pattern: "GET /ui/executions/{execution}/cast", Handle: h.executionCast, Stream: true},
		{Pattern: "GET /ui/executions/{execution}/output", Handle: h.executionOutput, Stream: true},
		{Pattern: "GET /ui/fleet", Handle: h.fleet},
		{Pattern: "GET /ui/fleet/timeline", Handle: h.timeline},
		{Pattern: "GET /ui/fleet/simulate", Handle: h.simulatePage},
		{Pattern: "POST /ui/fleet/simulate", Handle: h.simulate, MaxBody: 256 << 10},
		{Pattern: "GET /ui/fleet/machines/{machine}", Handle: h.machine},
		{Pattern: "GET /ui/events", Handle: h.events},
		{Pattern: "GET /ui/events/stream", Handle: h.eventLines, Stream: true},
	}
}

// api is a path of the API: api("runner", id, "executions") is /v1/runner/…/executions.
func api(parts ...string) string { return html.Path(append([]string{"v1"}, parts...)...).String() }

// Names of pages, for the bar.
var (
	OverviewName     = overviewText.Overview
	EnvironmentsName = execText.Environments
	RunnersName      = execText.Runners
	FleetName        = fleetview.Text.Fleet
	EventsName       = eventText.Events
)

// warning is a message with a tone: "warn" or "idle".
func warning(tone, title, more string) html.Part {
	return html.El("div", html.Class("notice "+tone), html.El("strong", html.Text(title)), html.El("p", html.Text(more)))
}
