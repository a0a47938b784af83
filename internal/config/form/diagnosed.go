package form

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover"
)

// Diagnosed is what is wrong with a file as an error; warnings are left out. Errors: Invalid.
func Diagnosed(diags hcl.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			lines = append(lines, d.Error())
		}
	}
	return drover.Errorf(drover.Invalid, "configuration: %s", strings.Join(lines, "; "))
}
