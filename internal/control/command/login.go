package command

import "github.com/drover-project/drover/acl"

// UpsertAuthMethods stores ways to log in, all or none. Result: []*acl.AuthMethod as they are stored. Errors: Conflict for a second
// default one of a type; Unavailable if the root key of their secrets is gone.
type UpsertAuthMethods struct {
	Methods []*acl.AuthMethod
	// Reseal says that the methods are those that are there, with the same secrets encrypted otherwise: their indexes stay. Errors:
	// Conflict for one that was changed or deleted meanwhile.
	Reseal bool
}

// DeleteAuthMethods removes ways to log in, all or none. Their binding rules stay, and hold for nobody. Result: nil. Errors: NotFound.
type DeleteAuthMethods struct{ Names []string }

// UpsertBindingRules stores what logins give, all or none. Result: []*acl.BindingRule as they are stored. Errors: Invalid for an auth
// method that is not there.
type UpsertBindingRules struct{ Rules []*acl.BindingRule }

// DeleteBindingRules removes binding rules, all or none. Result: nil. Errors: NotFound.
type DeleteBindingRules struct{ IDs []string }

// Kind implements Command.
func (*UpsertAuthMethods) Kind() Kind { return KindUpsertAuthMethods }

// Kind implements Command.
func (*DeleteAuthMethods) Kind() Kind { return KindDeleteAuthMethods }

// Kind implements Command.
func (*UpsertBindingRules) Kind() Kind { return KindUpsertBindingRules }

// Kind implements Command.
func (*DeleteBindingRules) Kind() Kind { return KindDeleteBindingRules }
