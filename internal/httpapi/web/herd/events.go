package herd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/fleetview"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// eventTopics are those that one can choose.
var eventTopics = []string{
	drover.TopicAll, drover.TopicJob, drover.TopicEvaluation, drover.TopicAllocation, drover.TopicDeployment, drover.TopicNode,
	drover.TopicNodePool, drover.TopicService, drover.TopicEnvironment, drover.TopicRunner, drover.TopicExecution, drover.TopicInstance,
	drover.TopicFleetPool, drover.TopicOperator, drover.TopicACLToken, drover.TopicACLPolicy, drover.TopicACLRole,
}

// events is the page of what happens. Its filters are its address; the script fills its table.
func (h *Pages) events(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	chosen := cmp.Or(q.Get("topic"), drover.TopicAll)
	options := make([]html.Part, 0, len(eventTopics))
	for _, topic := range eventTopics {
		words := topic
		if topic == drover.TopicAll {
			words = eventText.AllTopics
		}
		options = append(options, html.El("option", html.Attr("value", topic), html.Flag("selected", topic == chosen), html.Text(words)))
	}
	field := func(name, words string) html.Part {
		return html.El("div", html.El("label", html.Attr("for", name), html.Text(words)),
			html.El("input", html.ID(name), html.Attr("name", name), html.Attr("value", q.Get(name)), html.Attr("autocomplete", "off"),
				html.Attr("spellcheck", "false")))
	}
	head := make([]html.Part, 0, len(eventText.Columns))
	for _, c := range eventText.Columns {
		head = append(head, html.El("th", html.Attr("scope", "col"), html.Text(c)))
	}
	body := html.Group(html.El("h1", html.Text(eventText.Events)),
		html.El("form", html.Class("row search"),
			html.El("div", html.El("label", html.Attr("for", "topic"), html.Text(eventText.Topic)),
				html.El("select", append([]html.Part{html.ID("topic"), html.Attr("name", "topic")}, options...)...)),
			field("key", eventText.Key), field("namespace", eventText.Namespace), html.El("button", html.Text(eventText.Find))),
		html.El("p", html.ID("events-state"), html.Class("muted"), html.Attr("role", "status"), html.Attr("data-live-text", eventText.Follows),
			html.Attr("data-lost-text", eventText.Lost), html.Attr("data-missed-text", eventText.Missed), html.Attr("data-many-text",
				eventText.Many),
			html.Text(eventText.NoScript)),
		html.El("p", html.El("button", html.ID("pause"), html.Attr("type", "button"), html.Attr("hidden", ""), html.Attr("aria-pressed", "false"),
			html.Text(eventText.Pause))),
		html.El("div", html.Class("wide"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", eventText.Events),
			html.El("table", html.El("thead", html.El("tr", head...)), html.El("tbody", html.ID("events"),
				html.Attr("data-source", html.Path("ui", "events", "stream").String())))))
	return h.Write(w, r, http.StatusOK, eventText.Events, body, "events.js")
}

// eventLine is an event without its payload, and where its page is.
type eventLine struct {
	Index                       uint64
	Topic, Type, Key, Namespace string
	To                          string `json:",omitempty"`
}

// recent is how many indexes before now the page begins with.
const recent = 200

// eventLines sends what happens, a line of JSON an event: from the index that the page asks for, else from a little before now. The API
// says what the viewer may see, and 410 if not everything since the index is kept.
func (h *Pages) eventLines(w http.ResponseWriter, r *http.Request) error {
	asked := r.URL.Query()
	query := url.Values{"stale": {"true"}, "namespace": {cmp.Or(asked.Get("namespace"), "*")}}
	topic := cmp.Or(asked.Get("topic"), drover.TopicAll)
	if key := asked.Get("key"); key != "" {
		topic += ":" + key
	}
	query.Set("topic", topic)
	index := asked.Get("index")
	if index == "" {
		now, err := h.newest(r, query)
		if err != nil {
			return err
		}
		index = strconv.FormatUint(max(now, recent+1)-recent, 10)
	}
	query.Set("index", index)
	err := h.sendEvents(w, r, query)
	var failed *httpapi.StatusError
	if asked.Get("index") == "" && errors.As(err, &failed) && failed.Status == http.StatusGone { // less is kept: begin with what comes
		now, unknown := h.newest(r, query)
		if unknown != nil {
			return unknown
		}
		query.Set("index", strconv.FormatUint(now+1, 10))
		return h.sendEvents(w, r, query)
	}
	return err
}

// newest is the index up to which all that happened is known.
func (h *Pages) newest(r *http.Request, query url.Values) (uint64, error) {
	query = url.Values{"brief": {"true"}, "stale": {"true"}, "namespace": query["namespace"], "topic": query["topic"]}
	var first struct{ Index uint64 }
	begun := false
	err := h.Follow(r, "/v1/event/stream?"+query.Encode(), func(p []byte) error {
		line, _, _ := bytes.Cut(p, []byte("\n"))
		begun = true
		return cmp.Or(json.Unmarshal(line, &first), errRead)
	})
	if begun {
		err = nil
	}
	return first.Index, err
}

// sendEvents relays the API's stream until the viewer leaves.
func (h *Pages) sendEvents(w http.ResponseWriter, r *http.Request, query url.Values) error {
	return h.Stream(w, r, "application/x-ndjson", slowReader, func(send func([]byte) error) error {
		var rest []byte
		return h.Follow(r, "/v1/event/stream?"+query.Encode(), func(piece []byte) error {
			rest = append(rest, piece...)
			var out bytes.Buffer
			for {
				line, after, whole := bytes.Cut(rest, []byte("\n"))
				if !whole {
					break
				}
				if err := shortened(&out, line); err != nil {
					return err
				}
				rest = after
			}
			rest = slices.Clone(rest)
			return send(out.Bytes())
		})
	})
}

// slowReader is how long a viewer of events may take nothing until it is cut; it comes again.
const slowReader = 10 * time.Second

// shortened writes a line of the API's stream without payloads, one event a line. Heartbeats and errors stay as they are.
func shortened(out *bytes.Buffer, line []byte) error {
	var said struct {
		Index  uint64
		Error  string
		Events []eventLine
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return err
	}
	if len(said.Events) == 0 {
		out.Write(append(bytes.Clone(line), '\n'))
		return nil
	}
	encode := json.NewEncoder(out)
	for _, e := range said.Events {
		e.Index = said.Index
		if to := eventPath(&e); to != nil {
			e.To = to.String()
		}
		if err := encode.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// eventPath is the page of what an event is about; nil if there is none.
func eventPath(e *eventLine) *html.URL {
	var to html.URL
	switch e.Topic {
	case drover.TopicJob:
		to = html.Path("ui", "jobs", e.Key+"@"+e.Namespace)
	case drover.TopicAllocation:
		to = html.Path("ui", "allocations", e.Key)
	case drover.TopicEvaluation:
		to = html.Path("ui", "evaluations", e.Key)
	case drover.TopicDeployment:
		to = html.Path("ui", "deployments", e.Key)
	case drover.TopicNode:
		to = html.Path("ui", "clients", e.Key)
	case drover.TopicEnvironment:
		key := e.Key
		if !execution.IsKey(key) {
			key = execution.Key(e.Namespace, key)
		}
		to = html.Path("ui", "environments", key)
	case drover.TopicExecution:
		to = html.Path("ui", "executions", e.Key)
	case drover.TopicInstance:
		to = fleetview.MachinePath(e.Key)
	case drover.TopicFleetPool:
		to = html.Path("ui", "fleet")
	default:
		return nil
	}
	return &to
}
