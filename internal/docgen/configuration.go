package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/config/form"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/config/nomadkeys"
	webpages "github.com/drover-project/drover/internal/config/pages"
	"github.com/drover-project/drover/internal/config/plugin"
)

// configWriter collects the sections of the configuration's page.
type configWriter struct {
	sources map[string]*source // by the path of the package
	text    strings.Builder
}

// source returns the source of a type.
func (w *configWriter) source(t reflect.Type) *source { return w.sources[t.PkgPath()] }

// configuration writes the reference of the agent's keys. Names and types come from reflection over config.Agent, texts
// from the comments of its fields, and defaults from config.Default. Errors: a source file cannot be read or parsed.
func configuration(root string) (string, error) {
	w := &configWriter{sources: map[string]*source{}}
	// Some blocks have packages of their own, and a pool block is described by the fields of fleet.Policy.
	for _, t := range []reflect.Type{
		reflect.TypeFor[config.Agent](), reflect.TypeFor[plugin.Block](), reflect.TypeFor[clouds.Fingerprint](), reflect.TypeFor[webpages.UI](),
		reflect.TypeFor[fleet.Policy](), reflect.TypeFor[machines.Fleet](), reflect.TypeFor[form.Size](),
	} {
		s, err := parseSource(filepath.Join(root, strings.TrimPrefix(t.PkgPath(), reflect.TypeFor[drover.Job]().PkgPath())))
		if err != nil {
			return "", err
		}
		w.sources[t.PkgPath()] = s
	}
	w.text.WriteString("# Configuration of the agent\n\n" +
		"An agent reads HCL or JSON: `drover agent -config FILE-OR-FOLDER`, given as often as wanted. A later file wins over an\n" +
		"earlier one, `DROVER_…` variables win over files, and flags over variables. `drover agent config -config …` prints what\n" +
		"counts. An unknown key is an error that names it.\n\n" +
		"A duration is a text such as `\"90s\"`, `\"15m\"` or `\"24h\"`. A block is written `name { … }`, one with a label " +
		"`name \"label\" { … }`.\n\n" +
		reloading + "\n")
	w.block("", reflect.TypeFor[config.Agent](), reflect.ValueOf(config.Default()))
	w.development()
	w.ignored()
	w.refused()
	return w.text.String(), nil
}

// reloading says what the running agent takes up when it reads its files again.
const reloading = "At SIGHUP, or when `/v1/agent/reload` asks for it, the agent reads its files again and takes up certificates and\n" +
	"authorities (`tls`), `log_level` and `http_api_response_headers`. If anything is wrong with what it reads, all stays as it was,\n" +
	"and the log says why. Restart it after other changes; tasks, runners and executions go on meanwhile. The scheduler's\n" +
	"configuration, autopilot's and the fleet's pools can be changed over the API at any time. The log then goes on in the file that is\n" +
	"at `log_file`, so that others may rename it; without them `log_rotate_bytes` and `log_rotate_duration` do.\n"

// block writes a section for a block and then those of the blocks in it. defaults is a pointer to the block's struct in
// config.Default(), or nil.
func (w *configWriter) block(path string, t reflect.Type, defaults reflect.Value) {
	title := "Top level"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(&w.text, "## %s\n\n%s\n\n", title, sentence(w.about(t)))
	rows, children := newTable("Key", "Type", "Default", "Unit", "Meaning"), []func(){}
	count := 0
	w.eachKey(t, defaults, func(name, kind string, f reflect.StructField, value reflect.Value, comment string) {
		if kind == "block" {
			children = append(children, func() { w.nested(path, name, f.Type, value, comment) })
			return
		}
		meaning, unit, standard := described(comment)
		if f.Type == reflect.TypeFor[time.Duration]() {
			unit = duration
		}
		rows.row(code(name), kindOf(f.Type, unit), defaultOf(value, kind, standard), strings.TrimPrefix(unit, duration), sentence(meaning))
		count++
	})
	if count > 0 {
		w.text.WriteString(rows.String() + "\n")
	}
	for _, c := range children {
		c()
	}
}

// eachKey calls do with each key of a block and its comment; the keys of a squashed field lie beside the others.
func (w *configWriter) eachKey(t reflect.Type, defaults reflect.Value,
	do func(name, kind string, f reflect.StructField, value reflect.Value, comment string),
) {
	comments := w.source(t).fieldComments(t.Name())
	for i := range t.NumField() {
		f := t.Field(i)
		name, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		var value reflect.Value
		if defaults.IsValid() && !defaults.IsNil() {
			value = defaults.Elem().Field(i)
		}
		switch {
		case f.Type == reflect.TypeFor[drover.Capacity]() && kind != "block" && kind != "":
			w.eachSize(kind, comments[f.Name], do)
		case kind == "squash":
			w.eachKey(f.Type, reflect.Value{}, do)
		case name != "" && kind != "label" && kind != "remain":
			do(name, kind, f, value, comments[f.Name])
		}
	}
}

// eachSize is eachKey for a squashed drover.Capacity, whose comment tells of all keys; its default is the disk's if the
// others are required.
func (w *configWriter) eachSize(
	kind, comment string, do func(name, kind string, f reflect.StructField, value reflect.Value, comment string),
) {
	t := reflect.TypeFor[form.Size]()
	for i := range t.NumField() {
		name, optional, _ := strings.Cut(t.Field(i).Tag.Get("hcl"), ",")
		_, unit, _ := described(w.source(t).fieldComments(t.Name())[t.Field(i).Name])
		if kind == "squash,required" && name != "disk" {
			optional = ""
		}
		do(name, optional, t.Field(i), reflect.Value{}, comment+"; "+unit)
	}
}

// nested writes the section of a block in a block, below its dotted path and with its labels in capitals. A block that
// may be repeated has no defaults, as config.Default holds none of them.
func (w *configWriter) nested(path, name string, t reflect.Type, defaults reflect.Value, comment string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			defaults = reflect.Value{}
		}
		t = t.Elem()
	}
	if path != "" {
		name = path + "." + name
	}
	for i := range t.NumField() {
		if strings.HasSuffix(t.Field(i).Tag.Get("hcl"), ",label") {
			name += ` "` + strings.ToUpper(strings.TrimSuffix(t.Field(i).Tag.Get("hcl"), ",label")) + `"`
		}
	}
	// A free block has no keys of its own to list.
	if t == reflect.TypeFor[config.Free]() {
		fmt.Fprintf(&w.text, "## `%s`\n\n%s Keys are of your choice, values are texts.\n\n", name, sentence(comment))
		return
	}
	// These types decode the keys of another type, which has the comments.
	switch t {
	case reflect.TypeFor[machines.Pool]():
		t = reflect.TypeFor[fleet.Policy]()
	case reflect.TypeFor[drover.Capacity]():
		t = reflect.TypeFor[form.Size]()
	}
	w.block(name, t, defaults)
}

// about returns a type's comment as a sentence about the block, which has another name than the type.
func (w *configWriter) about(t reflect.Type) string {
	typeName := t.Name()
	text := w.source(t).typeComment(typeName)
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(text, typeName+verb); ok {
			return rest
		}
	}
	if rest, ok := strings.CutPrefix(text, typeName+" "); ok {
		return "this block " + rest
	}
	return text
}

const duration = "duration" // a type in the configuration, told as a unit in comments

// units are what a part of a comment may say of the unit.
var units = []string{
	duration, "MHz", "MB", "bytes", "percent", "0 to 1", "per hour", "per day", "per second", "$ per hour", "$ per day", "port", "path",
	"URL", "CIDR",
}

// described splits a field's comment, "meaning; unit; default value": all parts but the meaning may be missing.
func described(comment string) (meaning, unit, standard string) {
	var rest []string
	for _, part := range strings.Split(comment, "; ") {
		part = strings.TrimSuffix(strings.TrimSpace(part), ".")
		switch given, ok := strings.CutPrefix(part, "default"); {
		// Both "default 5" and "default: what it is otherwise" stand in comments.
		case ok && strings.HasPrefix(given, " "):
			standard = strings.TrimSpace(given)
		case ok && strings.HasPrefix(given, ": "):
			standard = strings.TrimSpace(given[1:])
		case slices.Contains(units, part):
			unit = part
		default:
			rest = append(rest, part)
		}
	}
	return strings.Join(rest, "; "), unit, standard
}

// kindOf names a key's type as HCL has it. A duration is a string in HCL, so only the comment's unit tells it apart.
func kindOf(t reflect.Type, unit string) string {
	if unit == duration {
		return duration
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "list of strings"
	case reflect.Map:
		return "map"
	case reflect.String:
		return "string"
	default:
		return "number"
	}
}

// defaultOf prefers what config.Default() holds; then what the comment says.
func defaultOf(value reflect.Value, kind, comment string) string {
	if kind != "optional" {
		return "required"
	}
	if comment != "" && !value.IsValid() || comment != "" && value.IsZero() {
		return comment
	}
	if value.IsValid() && !value.IsZero() {
		for value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		return code(fmt.Sprint(value.Interface()))
	}
	return "none"
}

// development says what -dev changes.
func (w *configWriter) development() {
	var on []string
	for _, p := range config.DevMode().Plugins {
		on = append(on, "`"+p.Name+"`")
	}
	fmt.Fprintf(&w.text, "## With `-dev`\n\n"+
		"Both `server` and `client` are enabled, nothing is kept after the agent's end, `enable_debug` is on, and plugins are\n"+
		"configured for trying things out: %s. `drover agent config -dev` prints it.\n\n", strings.Join(on, ", "))
}

// ignored lists Nomad's keys that are accepted without an effect.
func (w *configWriter) ignored() {
	w.text.WriteString("## Nomad's keys that have no effect\n\n" +
		"They are accepted, so that a configuration written for Nomad is taken.\n" +
		"The log and `drover config validate` name those that are given.\n\n")
	rows := newTable("Block", "Keys", "Why nothing is missed")
	for _, block := range slices.Sorted(maps.Keys(nomadkeys.Accepted)) {
		for _, u := range nomadkeys.Accepted[block] {
			rows.row(blockName(block), codes(u.Keys), sentence(u.Why))
		}
	}
	w.text.WriteString(rows.String())
}

// blockName is a block in a table.
func blockName(block string) string {
	if block == "" {
		return "top level"
	}
	return code(block)
}

// codes are keys in a table.
func codes(keys []string) string {
	var out []string
	for _, key := range keys {
		out = append(out, code(key))
	}
	return strings.Join(out, ", ")
}

// refused lists Nomad's keys that are refused, with the reasons.
func (w *configWriter) refused() {
	w.text.WriteString("\n## Nomad's keys that are refused\n\n" +
		"An agent that finds one says so and does not start, as who sets it relies on what does not happen.\n\n")
	rows := newTable("Block", "Keys", "Reason")
	for _, block := range slices.Sorted(maps.Keys(nomadkeys.Refused)) {
		byReason := map[string][]string{}
		for _, key := range slices.Sorted(maps.Keys(nomadkeys.Refused[block])) {
			reason := nomadkeys.Refused[block][key]
			byReason[reason] = append(byReason[reason], key)
		}
		for _, reason := range slices.Sorted(maps.Keys(byReason)) {
			rows.row(blockName(block), codes(byReason[reason]), sentence(reason))
		}
	}
	w.text.WriteString(rows.String())
}
