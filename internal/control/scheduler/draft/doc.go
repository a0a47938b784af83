// Package draft is the plan of an evaluation while it is made: what stops and why, what changes in place, what is evicted, and
// which evaluations follow. It writes down what others decide (packages reconcile and rank). It decides only this: an
// allocation on a node that is gone is lost and not stopped, and a follow-up that is stored already is not made twice. It is
// pure and has no goroutine.
package draft
