// Package facetest serves a face of the execution service in tests: over the real service, on a control plane and a node
// that are in memory. What it starts, goroutines too, ends with the test. It holds no tests.
package facetest
