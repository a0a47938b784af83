// Package federation keeps what regions share as it is in the authoritative one: namespaces, node pools, quotas and admission rules, and of
// access control policies, roles, global tokens, auth methods and binding rules.
//
// The leader of another region pulls them, waits for changes, and writes what differs into its own log. An answer has the keys of
// all objects of each kind that changed, and those objects that changed since the last one. What is changed or
// deleted in the authoritative region is changed or deleted here, and what exists only here is deleted; tokens that are local stay.
// While it does not answer, the last state serves. Writes are not this package's business: who writes in another region is sent to the
// authoritative one.
//
// Who asks for access control names the digest of a replication token, and the answer is encrypted with a key that is made of the token:
// the link need not be trusted. Secrets of auth methods are encrypted with this region's own keys before they are written.
//
// A deletion that the log refuses, such as that of a namespace which has jobs in this region, is tried again at each pull.
//
// It starts no goroutine: Run is called for a term of office and ends with it.
package federation
