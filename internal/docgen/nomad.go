package main

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/config/nomadkeys"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

// nomadCompatibility writes what of Nomad works: its HTTP endpoints, the blocks of job files, and keys of the
// configuration.
func nomadCompatibility() string {
	var text strings.Builder
	text.WriteString("# Nomad: what works, what is refused, what is ignored\n\n" +
		"Drover serves the HTTP API of Nomad for jobs, nodes, allocations, evaluations and deployments: Nomad's Go client, its command\n" +
		"line and job files are used unchanged. This page is written from the face's table of routes and the job file's table of\n" +
		"blocks. `scripts/peer-nomad-api` and `scripts/peer-nomad-cli` run the test suites of Nomad's client and command line.\n" +
		"`scripts/peer-prometheus` has Prometheus discover services.\n\n" +
		"What is refused is answered with status 501 and a sentence, and never with an empty success. Every other path below `/v1` is 404.\n\n" +
		"## Endpoints that work\n\nPUT and POST mean the same everywhere, as in Nomad.\n\n")
	// A pattern without a method is served for every method.
	works, refused := newTable("Methods", "Path"), newTable("Path", "Answer")
	for _, e := range nomad.Endpoints() {
		methods, path, found := strings.Cut(e.Pattern, " ")
		if !found {
			methods, path = "all", e.Pattern
		}
		if e.Refused != "" {
			refused.row(code(path), sentence(e.Refused))
			continue
		}
		works.row(strings.ReplaceAll(methods, ",", ", "), code(path))
	}
	fmt.Fprintf(&text, "%s\n## Endpoints that are refused\n\n%s\n", works, refused)
	jobFile(&text)
	drivers(&text)
	count := 0
	for _, list := range nomadkeys.Accepted {
		for _, u := range list {
			count += len(u.Keys)
		}
	}
	fmt.Fprintf(&text, "## The agent's configuration\n\n"+
		"Keys are Nomad's where Nomad has the key. %d of Nomad's keys are accepted without an effect; they are listed at the end of\n"+
		"[the configuration's reference](configuration.md#nomads-keys-that-have-no-effect), with the reasons.\n", count)
	return text.String()
}
