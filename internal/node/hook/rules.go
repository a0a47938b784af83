package hook

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/lookups"
	"github.com/drover-project/drover/internal/optional"
)

// TemplateRules are the node's rules for templates. The zero value denies no function and leaves each template its own wait.
type TemplateRules struct {
	// Deny are the functions that templates may not call, as patterns of package path ("sprig_*").
	Deny []string
	// Wait is that of templates which have none; nil: their changes do not wait.
	Wait *drover.WaitConfig
	// Bounds are the least and the longest wait of those that have one; nil: there are none.
	Bounds *drover.WaitConfig
	// Retry is how stubbornly control is asked what templates need.
	Retry lookups.Retry
}

// wait is how long a template's changes wait. It never is less than the lower bound, whatever the upper one says.
func (r TemplateRules) wait(own *drover.WaitConfig) *drover.WaitConfig {
	if own == nil {
		own = r.Wait
	}
	if own == nil || r.Bounds == nil {
		return own
	}
	low := max(optional.Value(own.Min), optional.Value(r.Bounds.Min))
	out := &drover.WaitConfig{Min: &low, Max: own.Max}
	if most := r.Bounds.Max; most != nil && (out.Max == nil || *out.Max > *most) {
		out.Max = most
	}
	if out.Max != nil && *out.Max < low {
		out.Max = new(low)
	}
	return out
}
