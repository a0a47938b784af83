// Package grant says what one allocation takes of one node. That is its share of what can be divided (Ask.On), and the ports,
// cores and devices that are given to it alone (Ask.Grant out of a Hold). Which node that is, is not decided here (package
// rank). It is pure and has no goroutine.
package grant
