// Package shapetest keeps what the log and snapshots hold readable by other programs. It writes down the names, numbers and
// types of all that is encoded, once for each cluster version, and fails when they change without one.
//
// How a value is encoded is package command's business. The package starts no goroutines.
package shapetest
