package command

import (
	"github.com/drover-project/drover/tenancy"
)

// UpsertQuotas stores quotas, checked and complete, all or none. Result: nil. Errors: Invalid.
type UpsertQuotas struct{ Quotas []*tenancy.QuotaSpec }

// DeleteQuotas removes quotas, all or none. Result: nil. Errors: NotFound, Conflict while a namespace refers to one.
type DeleteQuotas struct{ Names []string }

// Kind implements Command.
func (*UpsertQuotas) Kind() Kind { return KindUpsertQuotas }

// Kind implements Command.
func (*DeleteQuotas) Kind() Kind { return KindDeleteQuotas }
