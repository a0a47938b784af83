package native

import (
	"net/http"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// rightsOperations are those on what callers may do.
func (f *Face) rightsOperations() []operation {
	return []operation{{
		Route:   httpapi.Route{Pattern: "GET /v1/rights", Where: httpapi.Any, Need: httpapi.Anybody, Handle: f.rights},
		summary: "What the caller may do with the parts of the cluster, and in a namespace, and of what it may read something",
		query: []param{
			{Name: "known", Kind: "boolean", About: "403 for a token that is nobody's, and without one, also where access control is off"},
			{Name: "namespace", Kind: "string", About: "tell the capabilities in it, too, and those in some namespace, whichever, as * does"},
		},
		out: acl.Levels{},
	}}
}

// rights answers GET /v1/rights. Agents without server ask it about the tokens of their callers, and of tasks.
func (f *Face) rights(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Get("known") == "true" && f.Known != nil {
		secret := acl.Secret(httpapi.Token(r))
		if secret == "" {
			return httpapi.ErrDenied
		}
		if _, err := f.Known.Resolve(secret); err != nil {
			return err
		}
	}
	caller := httpapi.CallerOf(r.Context())
	levels := levelsOf(caller)
	if levels.Namespace = r.URL.Query().Get("namespace"); levels.Namespace != "" && !levels.Management {
		for _, c := range policy.Capabilities() {
			if caller.Namespace(levels.Namespace, c) {
				levels.Capabilities = append(levels.Capabilities, c.String())
			}
			if caller.Namespace(rights.AnyNamespace, c) {
				levels.Somewhere = append(levels.Somewhere, c.String())
			}
		}
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, levels)
}

func levelsOf(c *rights.Caller) acl.Levels {
	level := func(p policy.Part) string {
		for _, l := range []policy.Level{policy.Write, policy.Read, policy.List} {
			if c.Part(p, l) {
				return l.String()
			}
		}
		return ""
	}
	return acl.Levels{
		AccessorID: c.Token.AccessorID, Name: c.Token.Name, Management: c.Management(),
		Agent: level(policy.Agent), Node: level(policy.Node), Operator: level(policy.Operator), Quota: level(policy.Quota),
		Plugin: level(policy.Plugin), Fleet: level(policy.Fleet),
		Jobs:     c.Namespace(rights.AnyNamespace, policy.ReadJob),
		Services: c.Namespace(rights.AnyNamespace, policy.ReadServices), Runners: c.Namespace(rights.AnyNamespace, policy.ReadRunner),
		Volumes:   c.Namespace(rights.AnyNamespace, policy.HostVolumeRead),
		Variables: c.AnyVariable(rights.AnyNamespace, policy.ListVariables),
	}
}
