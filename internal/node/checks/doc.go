// Package checks carries out the checks of an allocation's services from its node, and keeps what each found last.
//
// A Set has one goroutine for each check; Update and Close end them. What a failure means is its owner's matter
// (package allocrunner).
package checks
