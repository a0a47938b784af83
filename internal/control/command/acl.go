package command

import "github.com/drover-project/drover/acl"

// BootstrapACL stores the first management token. It works once; again only with ResetIndex, the index of the last time. Result:
// *acl.Token. Errors: Conflict if it was done, or the index is another one; those of UpsertACLTokens.
type BootstrapACL struct {
	Token      *acl.Token
	ResetIndex uint64
}

// UpsertACLTokens stores tokens, all or none. What a token must not change stays as it was. Result: []*acl.Token as they are stored.
// Errors: Conflict for a secret that another token has, or that changes; Invalid for a link to a role that is not there.
type UpsertACLTokens struct{ Tokens []*acl.Token }

// DeleteACLTokens removes tokens, all or none, and their one-time tokens. Result: nil. Errors: NotFound.
type DeleteACLTokens struct{ AccessorIDs []string }

// UpsertACLPolicies stores policies. Result: nil.
type UpsertACLPolicies struct{ Policies []*acl.Policy }

// DeleteACLPolicies removes policies, all or none. What refers to one has the less from then on. Result: nil. Errors: NotFound.
type DeleteACLPolicies struct{ Names []string }

// UpsertACLRoles stores roles, all or none. Result: []*acl.Role as they are stored. Errors: Conflict for a name that another role has;
// Invalid for a policy that is not there.
type UpsertACLRoles struct{ Roles []*acl.Role }

// DeleteACLRoles removes roles, all or none. Tokens that are linked to one have the less from then on. Result: nil. Errors: NotFound.
type DeleteACLRoles struct{ IDs []string }

// PutOneTimeToken stores a one-time token, in the place of an earlier one of the same token. Result: nil. Errors: NotFound for a token that
// is not there.
type PutOneTimeToken struct{ Token *acl.OneTimeToken }

// ExchangeOneTimeToken uses a one-time token up. Result: *acl.Token, that which it was made with. Errors: Forbidden if there is none with
// the secret, if it has expired at the time, or its token.
type ExchangeOneTimeToken struct {
	Secret acl.Secret
	Time   int64
}

// ExpireACLTokens removes those of the tokens that have expired at the time, and all one-time tokens that have. Result: int, how many
// of both.
type ExpireACLTokens struct {
	AccessorIDs []string
	Time        int64
}

// Kind implements Command.
func (*BootstrapACL) Kind() Kind { return KindBootstrapACL }

// Kind implements Command.
func (*UpsertACLTokens) Kind() Kind { return KindUpsertACLTokens }

// Kind implements Command.
func (*DeleteACLTokens) Kind() Kind { return KindDeleteACLTokens }

// Kind implements Command.
func (*UpsertACLPolicies) Kind() Kind { return KindUpsertACLPolicies }

// Kind implements Command.
func (*DeleteACLPolicies) Kind() Kind { return KindDeleteACLPolicies }

// Kind implements Command.
func (*UpsertACLRoles) Kind() Kind { return KindUpsertACLRoles }

// Kind implements Command.
func (*DeleteACLRoles) Kind() Kind { return KindDeleteACLRoles }

// Kind implements Command.
func (*PutOneTimeToken) Kind() Kind { return KindPutOneTimeToken }

// Kind implements Command.
func (*ExchangeOneTimeToken) Kind() Kind { return KindExchangeOneTimeToken }

// Kind implements Command.
func (*ExpireACLTokens) Kind() Kind { return KindExpireACLTokens }
