// Command oracle renders cases.json with HashiCorp's consul-template, and writes what came out to ../consul-template.json. It has a go.mod of
// its own, as the product does not depend on consul-template: go run . in this folder.
package main

import (
	"encoding/json"
	"os"

	"github.com/hashicorp/consul-template/dependency"
	"github.com/hashicorp/consul-template/template"
	"github.com/hashicorp/nomad/api"
)

type cases struct {
	Variables []*api.Variable
	Lists     map[string][]string
	Absent    []string
	Services  map[string][]*api.ServiceRegistration
	Names     []*api.ServiceRegistrationStub
	Env       map[string]string
	Sources   []string
}

type outcome struct {
	Source  string
	Text    string
	Failed  bool
	Missing []string `json:",omitempty"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	data, err := os.ReadFile("cases.json")
	must(err)
	var c cases
	must(json.Unmarshal(data, &c))
	brain := template.NewBrain()
	for _, v := range c.Variables {
		for _, block := range []bool{true, false} {
			q, err := dependency.NewNVGetQuery(v.Namespace, v.Path)
			must(err)
			if block {
				q.EnableBlocking()
			}
			brain.Remember(q, &dependency.NewNomadVariable(v).Items)
		}
	}
	for _, path := range c.Absent { // a get answers nil; a block does not answer
		q, err := dependency.NewNVGetQuery("default", path)
		must(err)
		brain.Remember(q, nil)
	}
	for prefix, paths := range c.Lists {
		q, err := dependency.NewNVListQuery("default", prefix)
		must(err)
		list := []*dependency.NomadVarMeta{}
		for _, p := range paths {
			list = append(list, dependency.NewNomadVarMeta(&api.VariableMetadata{Namespace: "default", Path: p}))
		}
		brain.Remember(q, list)
	}
	for name, list := range c.Services {
		for _, tag := range []string{"", "b"} {
			q, err := dependency.NewNomadServiceQuery(map[bool]string{true: name, false: tag + "." + name}[tag == ""])
			must(err)
			var out []*dependency.NomadService
			for _, s := range list {
				if tags := sorted(s.Tags); tag == "" || tags[len(tags)-1] == tag {
					out = append(out, &dependency.NomadService{
						ID: s.ID, Name: s.ServiceName, Node: s.NodeID, Address: s.Address, Port: s.Port, Datacenter: s.Datacenter,
						Tags: tags, JobID: s.JobID, AllocID: s.AllocID,
					})
				}
			}
			brain.Remember(q, out)
		}
	}
	q, err := dependency.NewNomadServicesQuery("")
	must(err)
	var names []*dependency.NomadServicesSnippet
	for _, n := range c.Names {
		names = append(names, &dependency.NomadServicesSnippet{Name: n.ServiceName, Tags: sorted(n.Tags)})
	}
	brain.Remember(q, names)
	var env []string
	for k, v := range c.Env {
		env = append(env, k+"="+v)
	}
	var out []outcome
	for _, source := range c.Sources {
		o := outcome{Source: source}
		t, err := template.NewTemplate(&template.NewTemplateInput{Contents: source, FunctionDenylist: []string{"plugin", "writeToFile"}})
		must(err)
		r, err := t.Execute(&template.ExecuteInput{Brain: brain, Env: env})
		if o.Failed = err != nil; err == nil {
			o.Text = string(r.Output)
			for _, m := range r.Missing.List() {
				o.Missing = append(o.Missing, m.String())
			}
		}
		out = append(out, o)
	}
	f, err := os.Create("../consul-template.json")
	must(err)
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	must(e.Encode(out))
	must(f.Close())
}

func sorted(tags []string) []string {
	out := append([]string{}, tags...)
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}
