package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/internal/unheeded"
	"github.com/drover-project/drover/jobspec"
)

// jobFile writes the tables of a job: the words of its file, and each field of the API's with what becomes of it.
func jobFile(text *strings.Builder) {
	works, refused := newTable("Block", "Arguments"), newTable("Block", "Why")
	arguments, order := map[string][]string{}, []string{""}
	for _, w := range jobspec.Words() {
		block, name := "", w.Path
		if i := strings.LastIndexByte(w.Path, '.'); i >= 0 {
			block, name = w.Path[:i], w.Path[i+1:]
		}
		switch {
		case w.Refused != "":
			refused.row(code(w.Path), sentence(w.Refused))
		case w.Block:
			order = append(order, w.Path)
		default:
			arguments[block] = append(arguments[block], code(name))
		}
	}
	for _, block := range order {
		name := "job"
		if block != "" {
			name += "." + block
		}
		works.row(code(name), strings.Join(arguments[block], ", "))
	}
	fmt.Fprintf(text, "## Job files: what is read\n\n"+
		"Beside these, a file may hold `variable`, `variables` and `locals` blocks, and `dynamic` blocks in all places. "+
		"All of Nomad's functions\n"+
		"are there. A `task` may stand in the `job` itself, in a group of its own. The arguments of `config` are the driver's.\n"+
		"`pool` is ours: it makes a group a pool of warm runners. `${NAME}` that the file does not know stays for the node, "+
		"where it is a\nvariable of the task, or stays as it is.\n\n%s\n"+
		"## Job files: blocks that are refused\n\n%s\n", works, refused)
	jobFields(text)
}

// jobFields writes what becomes of each field of a job.
func jobFields(text *strings.Builder) {
	table := newTable("Block", "Works", "Ignored, with a warning", "Refused")
	reasons := newTable("Field", "", "Why")
	blocks := map[string]*[3][]string{}
	var order []string
	for _, f := range fieldsOfJob() {
		block, name := "Job", f.path
		if i := strings.LastIndexByte(f.path, '.'); i >= 0 {
			block, name = "Job."+f.path[:i], f.path[i+1:]
		}
		if blocks[block] == nil {
			blocks[block] = &[3][]string{}
			order = append(order, block)
		}
		blocks[block][f.fate] = append(blocks[block][f.fate], code(name))
		if f.why != "" {
			reasons.row(code("Job."+f.path), fates[f.fate], sentence(f.why))
		}
	}
	for _, block := range order {
		b := blocks[block]
		table.row(code(block), strings.Join(b[works], ", "), strings.Join(b[ignored], ", "), strings.Join(b[refused], ", "))
	}
	fmt.Fprintf(text, "## Jobs of the API: what becomes of each field\n\n"+
		"A job with a refused field is not registered. Who registers one with an ignored field that is set is told in the answer's\n"+
		"`Warnings`. A test holds this table against the job of Nomad's client.\n\n%s\n%s\n", table, reasons)
}

type fate int

const (
	works fate = iota
	ignored
	refused
)

var fates = [...]string{works: "works", ignored: "ignored", refused: "refused"}

// field is a field of a job.
type field struct {
	path string
	fate fate
	why  string
}

// serverSet are fields that the server answers with and ignores in what is registered.
var serverSet = []string{
	"Stop", "ParentID", "Dispatched", "DispatchIdempotencyToken", "Payload", "NomadTokenID", "Status", "StatusDescription", "Stable",
	"Version", "SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex", "VersionTag",
}

// fieldsOfJob lists the fields of a job, each block behind the one that it stands in.
func fieldsOfJob() []field {
	said := map[string]unheeded.Part{}
	for _, u := range unheeded.All() {
		said[u.Path] = u
	}
	var out []field
	var walk func(path string, t reflect.Type)
	walk = func(path string, t reflect.Type) {
		var inner []func()
		for i := range t.NumField() {
			f := t.Field(i)
			at := strings.TrimPrefix(path+"."+f.Name, ".")
			if path == "" && slices.Contains(serverSet, f.Name) {
				continue
			}
			u, known := said[at]
			below := blockType(f.Type)
			if f.Name == "Checks" {
				below = reflect.TypeFor[servicecheck.Check]()
			}
			switch {
			case known && u.Refused:
				out = append(out, field{at, refused, u.Why})
			case known:
				out = append(out, field{at, ignored, u.Why})
			case below != nil:
				inner = append(inner, func() { walk(at, below) })
			default:
				out = append(out, field{at, works, ""})
			}
		}
		for _, f := range inner {
			f()
		}
	}
	walk("", reflect.TypeFor[drover.Job]())
	return out
}

// blockType is the struct that a field holds one or several of; nil if it holds something else.
func blockType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return nil
	}
	return t
}
