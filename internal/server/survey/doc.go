// Package survey asks all servers of a region something at once: how each is, and what each recorded of requests. It needs no leader: one
// that there is not is what it finds.
//
// What the answers mean is package cluster's (Diagnose, JoinAudit). How a server is, it says in package self; what it recorded, in package
// auditing. Goroutines are those of questions that are under way; they end with the answers, which have a time limit.
package survey
