package command

import "github.com/drover-project/drover"

// UpsertAdmissionRules stores rules, checked and complete, all or none. Result: nil. Errors: Invalid, Conflict for more than there may be.
type UpsertAdmissionRules struct{ Rules []*drover.AdmissionRule }

// DeleteAdmissionRules removes rules, all or none. Result: nil. Errors: NotFound.
type DeleteAdmissionRules struct{ Names []string }

// Kind implements Command.
func (*UpsertAdmissionRules) Kind() Kind { return KindUpsertAdmissionRules }

// Kind implements Command.
func (*DeleteAdmissionRules) Kind() Kind { return KindDeleteAdmissionRules }
