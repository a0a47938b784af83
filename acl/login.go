package acl

// LoginRequest shows a signed token (JWT) of an identity provider, to get a token of ours.
type LoginRequest struct {
	AuthMethodName string
	LoginToken     Secret
}

// AuthURLRequest asks where a person goes to log in with an OIDC method.
type AuthURLRequest struct {
	AuthMethodName string
	RedirectURI    string // where the provider sends the person's browser afterwards; the method allows it
	ClientNonce    string // random, made by the client, and shown again to complete the login
}

// AuthURL is the answer to that.
type AuthURL struct{ AuthURL string }

// CompleteAuthRequest shows what a provider sent to the redirect URI, to get a token of ours.
type CompleteAuthRequest struct {
	AuthMethodName string
	ClientNonce    string
	State          string
	Code           Secret
	Iss            string // the provider's issuer, if it sent one
	RedirectURI    string
}
