// Package evaluations is the group of the Nomad face that shows what the scheduler was asked and how a change rolls out:
// all below /v1/evaluation(s) and /v1/deployment(s).
//
// It decides nothing about a deployment: control/intake does, behind Intake. It owns no goroutines.
package evaluations
