// Package telemetry holds what a process says about itself: metrics under Nomad's names, with an injected registry,
// and a log handler that lets people watch the log over HTTP.
//
// What is measured is the parts': they register it. It starts no goroutines.
package telemetry
