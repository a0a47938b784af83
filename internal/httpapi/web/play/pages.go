package play

import (
	"net/http"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/policy"
)

// Site is the page of which this is part.
type Site interface {
	// Ask reads what the API has at a path, as the viewer. Errors: *httpapi.StatusError.
	Ask(r *http.Request, path string, out any) error
	// Send asks the API with a body; the answer is read into out unless that is nil. Errors: those of Ask.
	Send(r *http.Request, method, path string, in, out any) error
	// Write answers with a page that has a script, unless that is "".
	Write(w http.ResponseWriter, r *http.Request, status int, title string, body html.Part, module string) error
	// Socket answers with a websocket of the API. There is a bound for each viewer.
	Socket(w http.ResponseWriter, r *http.Request, path string) error
	// May reports whether the viewer has all of the capabilities in the namespace, as far as that is known; "*" is any namespace.
	May(r *http.Request, namespace string, all ...policy.Capability) bool
	Failed(r *http.Request, err error) html.Part // what went wrong, and what to do
	SignIn(r *http.Request) html.Part            // where to sign in otherwise
}

// anywhere is some namespace, whichever.
const anywhere = "*"

// Module is the script of the page.
const Module = "play.js"

// Pages serves it.
type Pages struct {
	Site
	Clock clock.Clock
}

// Routes are its; where they are answered and what they need is the same for all of the page.
func (h *Pages) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /ui/play", Handle: h.page},
		{Pattern: "POST /ui/play", Handle: h.submit},
		{Pattern: "POST /ui/play/claim", Handle: h.claim},
		{Pattern: "GET /ui/play/live/{runner}", Handle: h.live, Stream: true},
		{Pattern: "POST /ui/play/facts", Handle: h.means},
		{Pattern: "POST /ui/play/environment", Handle: h.makeEnvironment},
	}
}
