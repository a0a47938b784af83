// Package self is what an agent says of itself: who it is and how it is, to the Nomad face, to drover doctor and to whoever collects
// metrics. Secrets are left out.
//
// It reads and starts no goroutine. What an operator does to servers is server/servers'.
package self
