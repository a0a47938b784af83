// Package binding says what the claims of who logged in give them: it reads selectors and templates of binding rules, maps
// claims to their variables, and decides which rules hold.
//
// Whether a claim is true is the identity provider's package's (control/idp); which roles and policies there are is the use case's. It is
// pure, and starts no goroutines.
package binding
