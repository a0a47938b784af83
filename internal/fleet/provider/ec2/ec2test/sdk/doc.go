// Package sdk has Amazon's own client judge ec2test. It is a module of its own, as the client of EC2 takes a minute to compile: so it is
// compiled once, not for the race detector and the linter, too, and drover does not require it. It starts no goroutines.
package sdk
