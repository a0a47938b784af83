package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// accessTabs lead to the parts of access control.
func accessTabs(r *http.Request) html.Part {
	items := make([]html.Part, 0, 5)
	for _, t := range []struct {
		words string
		path  html.URL
	}{
		{Text.Tokens, html.Path("ui", "access")},
		{Text.Policies, html.Path("ui", "access", "policies")},
		{Text.Roles, html.Path("ui", "access", "roles")},
		{Text.Methods, html.Path("ui", "access", "methods")},
		{Text.Rules, html.Path("ui", "access", "rules")},
	} {
		link := []html.Part{html.Href(t.path), html.Text(t.words)}
		if r.URL.EscapedPath() == t.path.String() {
			link = append(link, html.Attr("aria-current", "page"))
		}
		items = append(items, html.El("li", html.El("a", link...)))
	}
	return html.El("nav", html.Class("tabs"), html.Attr("aria-label", Text.Access), html.El("ul", items...))
}

// showAccess answers with a list of access control below its tabs.
func (h *Pages) showAccess(w http.ResponseWriter, r *http.Request, path, next string, body html.Part, err error) error {
	if err != nil {
		return h.Page(w, r, httpapi.Status(err), Text.Access, html.Group(html.El("h1", html.Text(Text.Access)), accessTabs(r), h.Failed(r, err)))
	}
	page := html.Path("ui", "access")
	if path != "" {
		page = html.Path("ui", "access", path)
	}
	return h.Page(w, r, http.StatusOK, Text.Access, html.Group(html.El("h1", html.Text(Text.Access)), accessTabs(r), h.done(r), body,
		h.Pager(r, page, next)))
}

// tokens lists them, and has a form for a new one.
func (h *Pages) tokens(w http.ResponseWriter, r *http.Request) error {
	return h.tokenList(w, r, http.StatusOK, nil)
}

func (h *Pages) tokenList(w http.ResponseWriter, r *http.Request, status int, failure error) error {
	var all []acl.TokenStub
	next, err := h.List(r, api("acl", "tokens"), url.Values{}, &all)
	if err != nil {
		return h.showAccess(w, r, "", "", html.Part{}, err)
	}
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		t := &all[i]
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "access", "tokens", t.AccessorID), parts.ShortID(t.AccessorID)),
			html.Name(cmp.Or(t.Name, parts.None)), html.Text(t.Type), rightsOf(t.Policies, t.Roles),
			html.Text(yesNo(t.Global)), expiry(t.ExpirationTime), parts.Instant(t.CreateTime)))
	}
	problem := html.Part{}
	if failure != nil {
		problem = h.Failed(r, failure)
	}
	body := html.Group(html.El("h1", html.Text(Text.Access)), accessTabs(r), h.done(r), problem,
		parts.Table(Text.Tokens, Text.TokenColumns, rows, Text.NoTokens), h.Pager(r, html.Path("ui", "access"), next), tokenForm(r))
	return h.Page(w, r, status, Text.Access, body)
}

// rightsOf names a token's policies and roles.
func rightsOf(policies []string, roles []*acl.TokenRole) html.Part {
	names := slices.Clone(policies)
	for _, role := range roles {
		if role != nil {
			names = append(names, Text.Role+" "+cmp.Or(role.Name, role.ID))
		}
	}
	return html.Name(cmp.Or(strings.Join(names, ", "), parts.None))
}

func expiry(t *time.Time) html.Part {
	if t == nil {
		return html.Text(Text.Never)
	}
	return parts.Instant(*t)
}

// tokenForm asks for a new token, with what was typed before.
func tokenForm(r *http.Request) html.Part {
	options := make([]html.Part, 0, 2)
	for _, kind := range []string{acl.ClientToken, acl.ManagementToken} {
		options = append(options, html.El("option", html.Attr("value", kind), html.Flag("selected", r.PostForm.Get("type") == kind),
			html.Text(Text.TokenTypes[kind])))
	}
	return html.El("form", html.Class("panel inputs"), html.Attr("method", "post"), html.Action(html.Path("ui", "access", "tokens")),
		html.El("h2", html.Text(Text.NewToken)),
		field("name", Text.Name, r.PostForm.Get("name")),
		html.El("div", html.El("label", html.Attr("for", "type"), html.Text(Text.Type)),
			html.El("select", append([]html.Part{html.ID("type"), html.Attr("name", "type")}, options...)...)),
		field("policies", Text.TokenPolicies, r.PostForm.Get("policies")), field("roles", Text.TokenRoles, r.PostForm.Get("roles")),
		field("ttl", Text.TTL, r.PostForm.Get("ttl")),
		html.El("div", html.Class("row"),
			html.El("input", html.ID("global"), html.Class("box"), html.Attr("type", "checkbox"), html.Attr("name", "global"),
				html.Attr("value", "1"), html.Flag("checked", r.PostForm.Get("global") != "")),
			html.El("label", html.Attr("for", "global"), html.Text(Text.Global))),
		html.El("div", html.El("button", html.Class("primary"), html.Text(Text.Create))))
}

// words are the names of a list, by commas or spaces.
func words(typed string) []string {
	return strings.FieldsFunc(typed, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })
}

// createToken makes a token, and shows its secret: this one time.
func (h *Pages) createToken(w http.ResponseWriter, r *http.Request) error {
	if err := form(r); err != nil {
		return err
	}
	asked := acl.Token{
		Name: strings.TrimSpace(r.PostForm.Get("name")), Type: r.PostForm.Get("type"), Policies: words(r.PostForm.Get("policies")),
		Global: r.PostForm.Get("global") != "",
	}
	for _, role := range words(r.PostForm.Get("roles")) {
		asked.Roles = append(asked.Roles, &acl.TokenRole{Name: role})
	}
	if ttl := strings.TrimSpace(r.PostForm.Get("ttl")); ttl != "" {
		life, err := time.ParseDuration(ttl)
		if err != nil || life <= 0 {
			return h.tokenList(w, r, http.StatusBadRequest, drover.Errorf(drover.Invalid, Text.BadTTL, ttl))
		}
		asked.ExpirationTTL = acl.TTL(life)
	}
	var made acl.Token
	if err := h.Do(r, http.MethodPut, api("acl", "token"), &asked, &made); err != nil {
		return h.tokenList(w, r, httpapi.Status(err), err)
	}
	body := html.Group(html.El("h1", html.Text(Text.TokenMade)), notice("ok", Text.SecretOnce, Text.SecretOnceMore),
		html.El("label", html.Attr("for", "secret"), html.Text(Text.Secret)),
		html.El("p", html.El("input", html.ID("secret"), html.Class("code"), html.Flag("readonly", true),
			html.Attr("value", string(made.SecretID)), html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false"))),
		tokenFacts(&made),
		html.El("p", html.El("a", html.Href(html.Path("ui", "access")), html.Text(Text.Tokens))))
	return h.Page(w, r, http.StatusOK, Text.TokenMade, body)
}

func tokenFacts(t *acl.Token) html.Part {
	return parts.Facts(parts.Fact(Text.Accessor, html.Text(t.AccessorID)), parts.Fact(Text.Name, html.Name(cmp.Or(t.Name, parts.None))),
		parts.Fact(Text.Type, html.Text(t.Type)), parts.Fact(Text.Rights, rightsOf(t.Policies, t.Roles)),
		parts.Fact(Text.Global, html.Text(yesNo(t.Global))), parts.Fact(Text.Made, parts.Instant(t.CreateTime)),
		parts.Fact(Text.Ends, expiry(t.ExpirationTime)))
}

// token shows one without its secret, which nobody is shown again.
func (h *Pages) token(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("token")
	var t acl.Token
	err := h.Ask(r, api("acl", "token", id), &t)
	links := make([]html.Part, 0, len(t.Policies))
	for _, p := range t.Policies {
		links = append(links, html.El("li", parts.Link(html.Path("ui", "access", "policies", p), p)))
	}
	body := html.Group(tokenFacts(&t), html.If(len(links) > 0, html.El("ul", links...)),
		html.El("form", html.Attr("method", "post"), html.Action(html.Path("ui", "access", "tokens", id, "delete")),
			html.El("button", html.Text(Text.Delete))))
	return h.Show(w, r, cmp.Or(t.Name, id), body, err)
}

// deleteToken asks once, and names it.
func (h *Pages) deleteToken(w http.ResponseWriter, r *http.Request) error {
	if err := form(r); err != nil {
		return err
	}
	id := r.PathValue("token")
	if r.PostForm.Get("sure") == "" {
		var t acl.Token
		if err := h.Ask(r, api("acl", "token", id), &t); err != nil {
			return h.Show(w, r, id, html.Part{}, err)
		}
		what := strings.TrimSpace(t.Name + " " + t.AccessorID)
		body := confirm(html.Path("ui", "access", "tokens", id, "delete"), html.Path("ui", "access", "tokens", id), Text.DeleteToken, what,
			Text.Delete)
		return h.Page(w, r, http.StatusOK, Text.Delete, body)
	}
	if err := h.Do(r, http.MethodDelete, api("acl", "token", id), nil, nil); err != nil {
		return h.Show(w, r, id, html.Part{}, err)
	}
	h.Tell(w, r, html.Path("ui", "access"), "token-deleted")
	return nil
}

// policies lists those that the viewer may know of.
func (h *Pages) policies(w http.ResponseWriter, r *http.Request) error {
	var all []acl.PolicyStub
	next, err := h.List(r, api("acl", "policies"), url.Values{}, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		p := &all[i]
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "access", "policies", p.Name), p.Name), workload(p.JobACL),
			html.Name(p.Description)))
	}
	return h.showAccess(w, r, "policies", next, parts.Table(Text.Policies, Text.PolicyColumns, rows, Text.NoPolicies), err)
}

// workload names the job, group and task that a policy is bound to.
func workload(j *acl.JobACL) html.Part {
	if j == nil {
		return html.Text(parts.None)
	}
	var names []string
	for _, name := range []string{j.Namespace, j.JobID, j.Group, j.Task} {
		if name != "" {
			names = append(names, name)
		}
	}
	return html.Name(strings.Join(names, " › "))
}

// policy shows one with its text.
func (h *Pages) policy(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("policy")
	var p acl.Policy
	err := h.Ask(r, api("acl", "policy", name), &p)
	body := html.Group(parts.Facts(parts.Fact(Text.Description, html.Name(cmp.Or(p.Description, parts.None))),
		parts.Fact(Text.Workload, workload(p.JobACL))),
		html.El("h2", html.Text(Text.PolicyText)),
		html.El("pre", html.Class("whole"), html.Attr("tabindex", "0"), html.Attr("role", "region"), html.Attr("aria-label", Text.PolicyText),
			html.Text(p.Rules)))
	return h.Show(w, r, name, body, err)
}

// roles lists them with their policies.
func (h *Pages) roles(w http.ResponseWriter, r *http.Request) error {
	var all []acl.RoleStub
	next, err := h.List(r, api("acl", "roles"), url.Values{}, &all)
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		role := &all[i]
		var links []html.Part
		for _, p := range role.Policies {
			if p != nil {
				links = append(links, html.El("li", parts.Link(html.Path("ui", "access", "policies", p.Name), p.Name)))
			}
		}
		rows = append(rows, parts.Row(html.Name(role.Name), html.Text(parts.ShortID(role.ID)), html.Name(role.Description),
			html.If(len(links) > 0, html.El("ul", links...))))
	}
	return h.showAccess(w, r, "roles", next, parts.Table(Text.Roles, Text.RoleColumns, rows, Text.NoRoles), err)
}

// methods lists the ways to log in.
func (h *Pages) methods(w http.ResponseWriter, r *http.Request) error {
	var all []acl.AuthMethodStub
	next, err := h.List(r, api("acl", "auth-methods"), url.Values{}, &all)
	rows := make([]html.Part, 0, len(all))
	for _, m := range all {
		rows = append(rows, parts.Row(html.Name(m.Name), html.Text(m.Type), html.Text(yesNo(m.Default))))
	}
	return h.showAccess(w, r, "methods", next, parts.Table(Text.Methods, Text.MethodColumns, rows, Text.NoMethods), err)
}

// rules lists the binding rules: whom a login gives what. Lists of the API have them in short, so each is asked for, as far as a page goes.
func (h *Pages) rules(w http.ResponseWriter, r *http.Request) error {
	var all []acl.BindingRuleStub
	next, err := h.List(r, api("acl", "binding-rules"), url.Values{}, &all)
	rows := make([]html.Part, 0, len(all))
	for _, stub := range all {
		var b acl.BindingRule
		if asked := h.Ask(r, api("acl", "binding-rule", stub.ID), &b); asked != nil {
			if httpapi.Status(asked) != http.StatusNotFound { // one may be deleted meanwhile
				err = cmp.Or(err, asked)
			}
			continue
		}
		gives := b.BindType
		if b.BindName != "" {
			gives += " " + b.BindName
		}
		rows = append(rows, parts.Row(html.Name(b.AuthMethod), html.Name(cmp.Or(b.Selector, Text.Anyone)), html.Name(gives),
			html.Name(b.Description), html.Text(parts.ShortID(b.ID))))
	}
	return h.showAccess(w, r, "rules", next, parts.Table(Text.Rules, Text.RuleColumns, rows, Text.NoRules), err)
}
