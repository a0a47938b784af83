package herd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/fleetview"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// question is what the form of the simulator holds.
type question struct {
	policy, workload, perHour, run, length, seed string
	of, was                                      string // the pool that was seen, and its index then; "": none was
	compare                                      bool
}

func firstQuestion(policy string) question {
	return question{policy: policy, workload: "daily", perHour: "600", run: "10m", length: "24h", seed: "1", compare: true}
}

// workloads are those that can be drawn.
var workloads = []string{"daily", "poisson", "bursty", "heavy", "burst"}

// simulatePage asks what to try; of a pool that the address names its policy is there to be changed.
func (h *Pages) simulatePage(w http.ResponseWriter, r *http.Request) error {
	text, of, was := "", "", ""
	if name := r.URL.Query().Get("pool"); name != "" {
		var pool fleet.PoolStatus
		if err := h.Ask(r, api("fleet", "pool", name), &pool); err != nil {
			return h.Show(w, r, fleetview.Text.Simulate, html.Part{}, err)
		}
		pretty, err := json.MarshalIndent(pool.Policy, "", "  ")
		if err != nil {
			return err
		}
		text, of, was = string(pretty), pool.Name, strconv.FormatUint(pool.ModifyIndex, 10)
	}
	q := firstQuestion(text)
	q.of, q.was = of, was
	return h.simulator(w, r, q, html.Part{})
}

// simulate tries a policy, or makes it the pool's. What was typed stays, whatever comes of it.
func (h *Pages) simulate(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%w", err)
	}
	f := r.PostForm
	q := question{
		policy: f.Get("policy"), workload: f.Get("workload"), perHour: f.Get("per-hour"), run: f.Get("run"), length: f.Get("length"),
		seed: f.Get("seed"), of: f.Get("of"), was: f.Get("was"), compare: f.Has("compare"),
	}
	ask, err := q.simulation()
	if err != nil {
		return h.simulator(w, r, q, h.Failed(r, err))
	}
	if f.Has("save") {
		at := api("fleet", "pool", ask.Policy.Name)
		if q.was != "" && q.of == ask.Policy.Name {
			at += "?" + url.Values{"was": {q.was}}.Encode()
		}
		if err := h.Send(r, http.MethodPut, at, ask.Policy, nil); err != nil {
			return h.simulator(w, r, q, html.Group(h.Failed(r, err), h.policyNow(r, &q, ask.Policy.Name, err)))
		}
		http.Redirect(w, r, "/ui/fleet", http.StatusSeeOther)
		return nil
	}
	var list []fleet.Simulated
	if err := h.Send(r, http.MethodPost, api("fleet", "simulate"), ask, &list); err != nil {
		return h.simulator(w, r, q, h.Failed(r, err))
	}
	return h.simulator(w, r, q, fleetview.Simulated(list))
}

// policyNow shows the policy that somebody else made the pool's meanwhile, beside what was typed. Who saves again has seen it.
func (h *Pages) policyNow(r *http.Request, q *question, name string, failure error) html.Part {
	var pool fleet.PoolStatus
	if httpapi.Status(failure) != http.StatusConflict || h.Ask(r, api("fleet", "pool", name), &pool) != nil {
		return html.Part{}
	}
	pretty, err := json.MarshalIndent(pool.Policy, "", "  ")
	if err != nil {
		return html.Part{}
	}
	q.of, q.was = name, strconv.FormatUint(pool.ModifyIndex, 10)
	return html.Group(html.El("h2", html.ID("now"), html.Text(fleetview.Text.PolicyNow)),
		html.El("pre", html.Class("whole"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-labelledby", "now"),
			html.Text(string(pretty))))
}

// simulation reads the form. Errors: Invalid.
func (q *question) simulation() (*fleet.Simulation, error) {
	ask := &fleet.Simulation{Policy: &fleet.Policy{}, Workload: q.workload, Compare: q.compare}
	decode := json.NewDecoder(strings.NewReader(q.policy))
	decode.DisallowUnknownFields()
	if err := decode.Decode(ask.Policy); err != nil {
		return nil, drover.Errorf(drover.Invalid, "%s: %w", fleetview.Text.Policy, err)
	}
	if ask.Policy.Name == "" {
		return nil, drover.Errorf(drover.Invalid, "%s: Name: missing", fleetview.Text.Policy)
	}
	var err error
	number := func(name, text string, to *float64) {
		v, failed := strconv.ParseFloat(text, 64)
		if *to = v; failed != nil && err == nil {
			err = drover.Errorf(drover.Invalid, "%s: want a number, got %q", name, text)
		}
	}
	duration := func(name, text string, to *time.Duration) {
		v, failed := time.ParseDuration(text)
		if *to = v; failed != nil && err == nil {
			err = drover.Errorf(drover.Invalid, `%s: want a duration as in "10m", got %q`, name, text)
		}
	}
	number(fleetview.Text.PerHour, q.perHour, &ask.PerHour)
	duration(fleetview.Text.Run, q.run, &ask.Run)
	duration(fleetview.Text.Length, q.length, &ask.Length)
	seed, failed := strconv.ParseUint(q.seed, 10, 64)
	if ask.Seed = seed; failed != nil {
		err = cmp.Or(err, drover.Errorf(drover.Invalid, "%s: want a number, got %q", fleetview.Text.Seed, q.seed))
	}
	return ask, err
}

func (h *Pages) simulator(w http.ResponseWriter, r *http.Request, q question, result html.Part) error {
	words := &fleetview.Text
	field := func(id, label, value string) html.Part {
		return html.El("div", html.El("label", html.Attr("for", id), html.Text(label)),
			html.El("input", html.ID(id), html.Class("count"), html.Attr("name", id), html.Attr("value", value), html.Attr("autocomplete", "off")))
	}
	options := []html.Part{html.ID("workload"), html.Attr("name", "workload")}
	for _, name := range workloads {
		options = append(options, html.El("option", html.Attr("value", name), html.Flag("selected", name == q.workload), html.Text(name)))
	}
	save := html.Part{}
	var named struct{ Name string }
	if json.Unmarshal([]byte(q.policy), &named) == nil && named.Name != "" && r.Method == http.MethodPost {
		save = html.El("button", html.Attr("name", "save"), html.Attr("value", "1"), html.Text(fmt.Sprintf(words.SavePolicy, named.Name)))
	}
	form := html.El("form", html.ID("simulator"), html.Attr("method", "post"), html.Action(html.Path("ui", "fleet", "simulate")),
		html.El("label", html.Attr("for", "policy"), html.Text(words.Policy), html.El("span", html.Class("muted hint"),
			html.Text(words.PolicyMore))),
		html.El("textarea", html.ID("policy"), html.Class("code"), html.Attr("name", "policy"), html.Attr("rows", "12"),
			html.Attr("required", ""),
			html.Attr("spellcheck", "false"), html.Text(q.policy)),
		html.El("div", html.Class("row actions"),
			html.El("div", html.El("label", html.Attr("for", "workload"), html.Text(words.Workload)), html.El("select", options...)),
			field("per-hour", words.PerHour, q.perHour), field("run", words.Run, q.run), field("length", words.Length, q.length),
			field("seed", words.Seed, q.seed),
			html.El("label", html.El("input", html.Class("check"), html.Attr("type", "checkbox"), html.Attr("name", "compare"),
				html.Flag("checked", q.compare)), html.Text(words.Compare)),
			html.El("input", html.Attr("type", "hidden"), html.Attr("name", "of"), html.Attr("value", q.of)),
			html.El("input", html.Attr("type", "hidden"), html.Attr("name", "was"), html.Attr("value", q.was)),
			html.El("button", html.Class("primary"), html.Text(words.Try)), save))
	head := html.Group(html.El("h1", html.Text(words.Simulate)), html.El("p", html.Class("muted"), html.Text(words.SimulateMore)))
	body := html.Group(head, result, form)
	return h.Write(w, r, http.StatusOK, words.Simulate, body, "charts.js")
}
