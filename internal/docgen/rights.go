package main

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
	"github.com/drover-project/drover/internal/httpapi/web"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// neededRights lists what right each route of every face needs, and which coarse policy gives it. Errors: none of the code as it is.
func neededRights(string) (string, error) {
	var text strings.Builder
	text.WriteString("# Rights: what each route needs\n\n" +
		"Each route says in its table what right its requests need, and this page is written from these tables. The words are those of\n" +
		"the policy language. [The security model](../security.md#who-may-do-what) explains them.\n\n" +
		"- **In the namespace asked for** is that of the query's `namespace`. Of `*` the right is needed in some namespace, and the answer\n" +
		"  has what is in those where the caller has it.\n" +
		"- **In the object's namespace** is decided where the object is known: that of the job in the body, or of the allocation,\n" +
		"  evaluation or deployment that the path names. Who has the right in no namespace is refused before.\n" +
		"  A command in a task that sees the node's own files needs `alloc-node-exec` besides, and a job's host volumes need the right to\n" +
		"  mount them.\n" +
		"- **In the namespace of what is named**: the id of a runner tells its namespace, an environment's is that of the query, and claims\n" +
		"  are in that of the query, too. An execution is in its runner's.\n" +
		"- **In namespace default** are the environments of Poseidon's API.\n" +
		"- **Anybody** is who shows no token, too. Who shows one that is not known, or has ended, is refused everywhere but where\n" +
		"  **nothing** is needed.\n\n" +
		"The last column is the least coarse policy that gives the right: `read` or `write` of the namespace, node pool or part.\n" +
		"`management` is a management token, or the holder of `api_token`.\n")
	coarse, err := coarsePolicies()
	if err != nil {
		return "", err
	}
	for _, part := range []struct {
		title string
		face  httpapi.Face
	}{
		{"Nomad's API", nomad.New(nomad.Config{Pprof: true})},
		{"Drover's own API", native.New(native.Config{}, native.Deps{})},
		{"The fleet, Arvados' paths and metrics", &fleet.Face{}},
		{"Poseidon's API", poseidon.New(poseidon.Config{}, poseidon.Deps{})},
		{"The page, which asks Drover's and Nomad's API as its viewer", &web.Face{}},
	} {
		rows := newTable("Methods", "Path", "Needs", "Policy")
		for _, r := range part.face.Routes() {
			cases := r.Need.Cases()
			if !r.Need.Varies() {
				cases = []httpapi.Case{{Path: r.Pattern, Need: r.Need}}
			}
			for _, c := range cases {
				methods, path, found := strings.Cut(c.Path, " ")
				if !found {
					methods, path = "all", c.Path
				}
				rows.row(strings.ReplaceAll(methods, ",", ", "), code(path), c.Need.String(), code(coarse.least(c.Need)))
			}
		}
		fmt.Fprintf(&text, "\n## %s\n\n%s", part.title, rows)
	}
	return text.String(), nil
}

// policies are callers with a coarse policy for everything, the least one first.
type policies []struct {
	word   string
	caller *rights.Caller
}

// coarsePolicies returns those that there are.
func coarsePolicies() (policies, error) {
	var out policies
	for _, word := range []string{"read", "write"} {
		var rules strings.Builder
		for _, label := range []string{"namespace", "node_pool", "host_volume"} {
			fmt.Fprintf(&rules, "%s \"*\" { policy = %q }\n", label, word)
		}
		for _, part := range []string{"agent", "node", "operator", "quota", "plugin"} {
			if part == "plugin" && word == "write" {
				continue // there is no such policy
			}
			fmt.Fprintf(&rules, "%s { policy = %q }\n", part, word)
		}
		p, err := policy.Parse(rules.String())
		if err != nil {
			return nil, err
		}
		out = append(out, struct {
			word   string
			caller *rights.Caller
		}{word, &rights.Caller{Token: &acl.Token{}, Rights: rights.Compile(p)}})
	}
	return out, nil
}

// least is the first policy that meets the need; "" if nothing is needed, "management" if none does.
func (p policies) least(n httpapi.Need) string {
	if n.MetBy(&rights.Caller{Token: &acl.Token{}}) {
		return ""
	}
	for _, c := range p {
		if n.MetBy(c.caller) {
			return c.word
		}
	}
	return "management"
}
