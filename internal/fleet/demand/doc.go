// Package demand translates what control knows into what the fleet decides by: classes of work that waits for machines, and
// the nodes that are the fleet's machines.
//
// A View observes the log of the control plane. It reads the state through an interface, decides nothing, and starts no
// goroutine: the loops of package pool ask it, and wait on the channels that it returns. What is bought for the demand is
// package scaler's.
package demand
