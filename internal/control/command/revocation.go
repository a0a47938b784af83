package command

import "github.com/drover-project/drover/cluster"

// RevokeCertificate stores a revocation, checked and complete; one that is there keeps the time and the index of its creation, and the
// later end. Result: *cluster.Revocation. Errors: Invalid, Conflict for more than there may be.
type RevokeCertificate struct{ Revocation *cluster.Revocation }

// ForgetRevocations removes revocations. Before = 0 removes them all or none, else those that end by then. Result: nil. Errors: NotFound,
// for Before = 0.
type ForgetRevocations struct {
	IDs    []string
	Before int64 // UnixNano
}

// Kind implements Command.
func (*RevokeCertificate) Kind() Kind { return KindRevokeCertificate }

// Kind implements Command.
func (*ForgetRevocations) Kind() Kind { return KindForgetRevocations }
