// Package ec2 buys machines of Amazon EC2, or of a cloud that speaks its query API.
//
// The client is its own: seven calls as forms, answered in XML. The SDK signs them and finds the credentials. Its package
// for EC2 is 10 MB of source, and is used in tests only, where it judges the emulator that the client is tried against.
//
// A create asks for a batch of machines, or for one, with its id as the ClientToken: a repeat gives the same ones. Which
// machine of a batch is whose is told by its launch index. Machines terminate when they shut themselves down, so that the
// dead-man switch ends what they cost.
//
// What is bought is decided by package scaler. Calls run in their caller's goroutine.
package ec2
