package drover

import (
	"fmt"
	"strconv"

	"github.com/drover-project/drover/internal/validation"
)

// validateTemplates checks a task's templates. Their texts are not parsed here: the node renders them.
func validateTemplates(v *validation.Report, at string, list []*Template) {
	for i, m := range list {
		where := fmt.Sprintf("%s.Templates[%d]", at, i)
		if m == nil {
			v.Addf(where, "must not be null")
			continue
		}
		m.validate(v, where)
	}
}

// validate checks one template. The permissions are octal digits of at most twelve bits.
func (m *Template) validate(v *validation.Report, at string) {
	v.Check((m.SourcePath == "") != (m.EmbeddedTmpl == ""), at, "needs either SourcePath or EmbeddedTmpl")
	v.Check(m.DestPath != "", at+".DestPath", "must be set")
	v.Check(validation.InAllocation(m.DestPath), at+".DestPath", "must not leave the allocation's folder, got %q", m.DestPath)
	switch m.ChangeMode {
	case "restart", "noop", "script":
	case "signal":
		v.Check(m.ChangeSignal != "", at+".ChangeSignal", "must be set for change_mode signal")
	default:
		v.Addf(at+".ChangeMode", "must be restart, signal, noop or script, got %q", m.ChangeMode)
	}
	if m.Perms != "" {
		_, err := strconv.ParseUint(m.Perms, 8, 12)
		v.Check(err == nil, at+".Perms", "must be octal such as 0644, got %q", m.Perms)
	}
	v.Check(m.Splay == nil || *m.Splay >= 0, at+".Splay", "must not be negative")
	v.Check(m.ChangeMode != "script" || m.ChangeScript != nil && m.ChangeScript.Command != "", at+".ChangeScript.Command",
		"must be set for change_mode script")
	if w := m.Wait; w != nil && w.Min != nil && w.Max != nil {
		v.Check(*w.Min <= *w.Max, at+".Wait", "Min %v is above Max %v", *w.Min, *w.Max)
	}
}
