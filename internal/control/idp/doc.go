// Package idp asks identity providers who somebody is: it verifies signed tokens (JWT) and takes people through OpenID Connect's
// authorization code flow, as auth methods say. What it returns are claims that the provider stands for.
//
// What claims give is package binding's and the use case's. Outgoing requests go to addresses that the guard allows, and are bounded in
// time and size. Libraries: cap/jwt for signatures and times, go-oidc and x/oauth2 for the flow.
//
// It keeps nothing for a login that has begun: the state that the provider sends back is signed with a key of this process, and tells
// all. So a flood of begun logins costs no memory; a login that another server began has to be begun again.
//
// It starts no goroutines but those of go-oidc that fetch keys, which end with the fetch.
package idp
