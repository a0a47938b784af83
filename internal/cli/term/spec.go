package term

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/drover-project/drover"
)

// IsFile tells a file from a name: names have neither dots nor slashes.
func IsFile(arg string) bool { return arg == "-" || strings.ContainsAny(arg, "./\\") }

// isJSON tells JSON from HCL, which never begins with a brace.
func isJSON(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }

// DecodeSpec reads a specification in HCL, or in HCL's JSON, into tagged fields. Errors: Invalid, with line and column.
func DecodeSpec(text []byte, file string, into any) error {
	parse := hclparse.NewParser().ParseHCL
	if isJSON(text) {
		parse = hclparse.NewParser().ParseJSON
	}
	f, diags := parse(text, file)
	if !diags.HasErrors() {
		diags = gohcl.DecodeBody(f.Body, nil, into)
	}
	return Diagnosed(diags)
}

// Diagnosed makes an error of all that is wrong.
func Diagnosed(diags hcl.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			lines = append(lines, d.Error())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "%s", strings.Join(lines, "; "))
}

// OfAPI reports whether JSON is what the API answers, whose keys begin with capitals, rather than a specification's.
func OfAPI(text []byte) bool {
	var keys map[string]json.RawMessage
	return isJSON(text) && json.Unmarshal(text, &keys) == nil && keys["Name"] != nil
}

// DecodeAPI reads what the API answers. Errors: Invalid, also for keys that are unknown.
func DecodeAPI(text []byte, file string, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", file, err)
	}
	return nil
}
