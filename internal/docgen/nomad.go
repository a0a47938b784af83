package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/jobspec"
)

// stored are words of a job file that are kept with the job and do nothing, beside those that drover.Job.IgnoredBlocks tells of.
// The generator fails if a job file can no longer hold one.
var stored = map[string]string{
	"vault_namespace":                    "There is no Vault integration.",
	"consul_namespace":                   "There is no Consul integration.",
	"group.task.template.vault_grace":    "Nomad ignores it, too.",
	"group.task.resources.iops":          "Nomad ignores it, too.",
	"group.network.mbits":                "Networks are not scheduled by bandwidth.",
	"group.task.resources.network.mbits": "Networks are not scheduled by bandwidth.",
	"group.task.kind":                    "There is no service mesh.",
	"group.task.action":                  "Actions are listed, and running one is refused; use exec.",
}

// nomadCompatibility writes what of Nomad works: its HTTP endpoints, the blocks of job files, and keys of the
// configuration. Errors: a source file cannot be read, or a word of stored is gone.
func nomadCompatibility(root string) (string, error) {
	var text strings.Builder
	text.WriteString("# Nomad: what works, what is refused, what is ignored\n\n" +
		"Drover serves the HTTP API of Nomad for jobs, nodes, allocations, evaluations and deployments: Nomad's Go client, its command\n" +
		"line and job files are used unchanged. This page is written from the face's table of routes and the job file's table of\n" +
		"blocks. `scripts/peer-nomad-api` and `scripts/peer-nomad-cli` run the test suites of Nomad's client and command line.\n\n" +
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
	if err := jobFile(&text); err != nil {
		return "", err
	}
	s, err := parseSource(filepath.Join(root, "internal/config"))
	if err != nil {
		return "", err
	}
	keys, lists := s.textLists("accepted")
	count := 0
	for _, k := range keys {
		count += len(lists[k])
	}
	fmt.Fprintf(&text, "## The agent's configuration\n\n"+
		"Keys are Nomad's where Nomad has the key. %d of Nomad's keys are accepted without an effect; they are listed at the end of\n"+
		"[the configuration's reference](configuration.md#nomads-keys-that-have-no-effect).\n", count)
	return text.String(), nil
}

// jobFile writes the tables of a job file's words. Each word goes into one of them: it works, is stored without effect,
// or is refused. Errors: Invalid if stored names a word that the job file's table no longer has.
func jobFile(text *strings.Builder) error {
	unused := map[string]string{}
	for path, why := range stored {
		unused[path] = why
	}
	// The registration's own warnings are the reason in the table, so that page and product say the same.
	service, identity := unheeded()
	works, ignored, refused := newTable("Block", "Arguments"), newTable("Where", "Why"), newTable("Block", "Why")
	arguments, order := map[string][]string{}, []string{""}
	for _, w := range jobspec.Words() {
		block, name := "", w.Path
		if i := strings.LastIndexByte(w.Path, '.'); i >= 0 {
			block, name = w.Path[:i], w.Path[i+1:]
		}
		why, kept := unused[w.Path]
		delete(unused, w.Path)
		switch {
		case w.Refused != "":
			refused.row(code(w.Path), sentence(w.Refused))
		case kept:
			ignored.row(code(w.Path), why)
		case w.Block && strings.HasSuffix("."+w.Path, ".service"):
			ignored.row(code(w.Path), sentence(service))
		case w.Block && strings.HasSuffix(w.Path, ".identity"):
			ignored.row(code(w.Path), sentence(identity))
		case w.Block:
			order = append(order, w.Path)
		default:
			arguments[block] = append(arguments[block], code(name))
		}
	}
	// What is left was not found among the words: the entry is outdated.
	for path := range unused {
		return drover.Errorf(drover.Invalid, "a job file cannot hold %q any more", path)
	}
	for _, block := range order {
		name := "job"
		if block != "" {
			name += "." + block
		}
		works.row(code(name), strings.Join(arguments[block], ", "))
	}
	fmt.Fprintf(text, "## Job files: blocks that work\n\n"+
		"Beside these, a file may hold `variable`, `variables` and `locals` blocks, and `dynamic` blocks in all places. "+
		"All of Nomad's functions\n"+
		"are there. A `task` may stand in the `job` itself, in a group of its own. The arguments of `config` are the driver's.\n"+
		"`pool` is ours: it makes a group a pool of warm runners.\n\n%s\n"+
		"## Job files: what is stored and has no effect\n\nWho registers a job with a `service` or `identity` block is warned.\n\n%s\n"+
		"## Job files: blocks that are refused\n\n%s\n", works, ignored, refused)
	return nil
}

// unheeded returns what the registration of a job says of its service and identity blocks.
func unheeded() (service, identity string) {
	job := &drover.Job{TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{
		{Name: "t", Services: []*drover.Service{{}}, Identities: []*drover.WorkloadIdentity{{}}},
	}}}}
	for _, line := range job.IgnoredBlocks() {
		_, said, _ := strings.Cut(line, ": ")
		if strings.HasPrefix(said, "service") {
			service = said
		} else {
			identity = said
		}
	}
	return service, identity
}
