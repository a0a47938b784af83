// Package netguard keeps requests that users have this process make (artifacts, webhooks) from reaching what only this
// machine can reach: its own services, its cloud's metadata, its networks.
//
// An address is judged when it is dialled, after its name was resolved. So a name that stands for something else at the second
// look gains nothing. An address in a URL is judged before as well, also in every redirect.
//
// It reads no configuration and makes no request. It starts no goroutines.
package netguard
