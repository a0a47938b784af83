// Package ec2test emulates Amazon EC2's query API over HTTP: what a provider of machines needs of it, with its pages,
// its delays, its errors and its throttling. Amazon's own SDK is its judge.
//
// It is for tests only. It has no goroutines but those of the HTTP server that it is put behind.
package ec2test
