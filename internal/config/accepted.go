package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/config/nomadkeys"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/validation"
)

// settle checks what the blocks' structs had no field for, and adds the accepted keys among it to Ignored. Errors: the
// unknown keys.
func (a *Agent) settle() hcl.Diagnostics {
	found := map[string]bool{}
	diags := settleStruct(reflect.ValueOf(a).Elem(), "", found)
	for block, given := range map[string]*Foreign{"consul": a.Consul, "vault": a.Vault} {
		if given != nil && given.Enabled == nil { // false says itself that there is none
			found[block] = true
		}
	}
	if a.TLS != nil && a.TLS.VerifyServerHostname != nil && !*a.TLS.VerifyServerHostname {
		found["tls.verify_server_hostname"] = true
	}
	if t := a.Telemetry; t != nil && t.Prometheus != nil && !*t.Prometheus {
		found["telemetry.prometheus_metrics"] = true
	}
	a.Ignored = slices.Sorted(maps.Keys(found))
	return diags
}

func settleStruct(v reflect.Value, path string, found map[string]bool) (diags hcl.Diagnostics) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("hcl"), ",")
		switch {
		case field.Type == reflect.TypeFor[hcl.Body]():
			if body, ok := value.Interface().(hcl.Body); ok && field.Name == "Rest" {
				diags = append(diags, meant(settleBody(body, path, found), v.Type(), path)...)
			}
			value.SetZero()
		case value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct && !value.IsNil():
			diags = append(diags, settleStruct(value.Elem(), dotted(path, name), found)...)
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Pointer:
			for i := range value.Len() {
				diags = append(diags, settleStruct(value.Index(i).Elem(), dotted(path, name), found)...)
			}
		}
	}
	return diags
}

// unexpected is how HCL says that a key is unknown.
var unexpected = lazyregexp.New(`^(?:An argument named|Blocks of type) "([^"]+)" (?:is|are) not expected here\.$`)

// meant names the key that was perhaps meant by an unknown one: of the block's struct, or of those that are accepted beside it.
func meant(diags hcl.Diagnostics, block reflect.Type, path string) hcl.Diagnostics {
	var known []string
	for i := range block.NumField() {
		if name, _, _ := strings.Cut(block.Field(i).Tag.Get("hcl"), ","); name != "" {
			known = append(known, name)
		}
	}
	for _, d := range diags {
		said := unexpected().FindStringSubmatch(d.Detail)
		if said == nil {
			continue
		}
		if near := validation.Nearest(said[1], append(known, nomadkeys.Keys(path)...)); near != "" {
			d.Detail += " Did you mean \"" + near + "\"?"
		}
	}
	return diags
}

// settleBody looks for the accepted names, each as an argument first, which in JSON a block is too, then as a block.
// "name LABEL" in the table is a block with a label.
func settleBody(body hcl.Body, path string, found map[string]bool) hcl.Diagnostics {
	var arguments, blocks hcl.BodySchema
	for _, entry := range nomadkeys.Keys(path) {
		name, label, labelled := strings.Cut(entry, " ")
		header := hcl.BlockHeaderSchema{Type: name}
		if labelled {
			header.LabelNames = []string{label}
		}
		arguments.Attributes = append(arguments.Attributes, hcl.AttributeSchema{Name: name})
		blocks.Blocks = append(blocks.Blocks, header)
	}
	for name := range nomadkeys.Refused[path] {
		arguments.Attributes = append(arguments.Attributes, hcl.AttributeSchema{Name: name})
	}
	given, rest, diags := body.PartialContent(&arguments)
	if diags.HasErrors() {
		return diags
	}
	nested, diags := rest.Content(&blocks)
	for name, attr := range given.Attributes {
		if reason := nomadkeys.Refused[path][name]; reason != "" {
			delete(given.Attributes, name)
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: dotted(path, name) + " is refused", Detail: reason + ". Remove it.", Subject: &attr.NameRange,
			})
		}
	}
	for name := range given.Attributes {
		found[dotted(path, name)] = true
	}
	for _, b := range nested.Blocks {
		found[dotted(path, b.Type)] = true
	}
	return diags
}

func dotted(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// WhyIgnored says why a key of Agent.Ignored has no effect; "" if nothing is known of that.
func WhyIgnored(key string) string { return nomadkeys.Why(key) }
