package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// auditFilters are the parameters of the page that are the API's.
var auditFilters = []string{"accessor", "operation", "object", "namespace", "class", "allowed", "since", "until"}

// audit shows what servers recorded of requests, the newest first. It is not kept up to date: its own questions are recorded, too.
func (h *Pages) audit(w http.ResponseWriter, r *http.Request) error {
	asked := r.URL.Query()
	query := url.Values{"per_page": {"50"}}
	for _, name := range auditFilters {
		if v := asked.Get(name); v != "" {
			query.Set(name, v)
		}
	}
	if after := asked.Get("after"); after != "" {
		query.Set("next_token", after)
	}
	var found cluster.AuditRecords
	if err := h.Ask(r, api("operator", "audit")+"?"+query.Encode(), &found); err != nil {
		return h.Show(w, r, AuditText.Audit, html.Part{}, err)
	}
	nothing := AuditText.Nothing
	if !found.Until.IsZero() {
		nothing = fmt.Sprintf(AuditText.NothingYet, found.Until.UTC().Format(time.DateTime))
	}
	rows := make([]html.Part, 0, len(found.Records))
	for i := range found.Records {
		rows = append(rows, auditRow(&found.Records[i]))
	}
	body := html.Group(
		html.El("p", html.Class("muted"), html.Text(AuditText.About)),
		auditForm(r),
		silent(found.Servers),
		parts.Table(AuditText.Audit, AuditText.Columns, rows, nothing),
		h.Pager(r, at(r, html.Path("ui", "audit"), auditFilters...), found.NextToken),
		html.El("p", html.Class("muted"), html.Text(AuditText.CommandLine), html.El("code", html.Text("drover operator audit list"))))
	return h.Show(w, r, AuditText.Audit, body, nil)
}

// auditRow is a decision.
func auditRow(a *cluster.AuditRecord) html.Part {
	who := html.Name(cmp.Or(a.TokenName, parts.None))
	if a.AccessorID != "" {
		who = parts.Link(html.Path("ui", "access", "tokens", a.AccessorID), cmp.Or(a.TokenName, parts.ShortID(a.AccessorID)))
	}
	status, tone, why := parts.None, "idle", a.Needs
	switch {
	case a.Status >= http.StatusBadRequest:
		status, tone = strconv.Itoa(a.Status), "warn"
	case a.Status > 0:
		status, tone = strconv.Itoa(a.Status), "ok"
	}
	if !a.Allowed {
		status, tone, why = status+" "+AuditText.Refused, "bad", cmp.Or(a.Reason, a.Needs)
	}
	return parts.Row(parts.Instant(a.Time), html.Name(a.Server), who, html.Name(a.Operation), html.Name(a.Path), html.Name(a.Object),
		html.Name(a.Namespace), parts.Toned(tone, status), html.Name(cmp.Or(a.Forwarded, a.Remote)), html.Name(why))
}

// silent says which servers have nothing to say, and why.
func silent(servers []cluster.AuditServer) html.Part {
	var lines []html.Part
	for _, s := range servers {
		if s.Problem != "" {
			lines = append(lines, html.El("p", html.El("strong", html.Name(s.Name)), html.Text(": "), html.Name(s.Problem)))
		}
	}
	return html.If(len(lines) > 0,
		html.El("div", html.Class("notice warn"), html.El("p", html.Text(AuditText.Silent+":")), html.Group(lines...)))
}

// auditForm is the filters, as they are set.
func auditForm(r *http.Request) html.Part {
	asked := r.URL.Query()
	return html.El("form", html.Class("row search"),
		field("accessor", AuditText.Who, asked.Get("accessor")), field("object", AuditText.Object, asked.Get("object")),
		field("namespace", Text.Namespace, asked.Get("namespace")),
		choice("operation", AuditText.Operation, asked.Get("operation"),
			[]string{"", "GET", "PUT", "POST", "DELETE"}, []string{AuditText.Anything, "GET", "PUT", "POST", "DELETE"}),
		choice("class", AuditText.Class, asked.Get("class"),
			[]string{"", "change", "secret", "read"}, []string{AuditText.Anything, "change", "secret", "read"}),
		choice("allowed", AuditText.Allowed, asked.Get("allowed"),
			[]string{"", "true", "false"}, []string{AuditText.Anything, AuditText.Yes, AuditText.No}),
		field("since", AuditText.Since, asked.Get("since")), field("until", AuditText.Until, asked.Get("until")),
		html.El("button", html.Text(Text.Find)))
}

// choice is a field with some values to choose from.
func choice(name, label, chosen string, values, words []string) html.Part {
	options := make([]html.Part, len(values))
	for i, v := range values {
		options[i] = html.El("option", html.Attr("value", v), html.If(v == chosen, html.Attr("selected", "")), html.Text(words[i]))
	}
	return html.El("div", html.El("label", html.Attr("for", name), html.Text(label)),
		html.El("select", append([]html.Part{html.ID(name), html.Attr("name", name)}, options...)...))
}
