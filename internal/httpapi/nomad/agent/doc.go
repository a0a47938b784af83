// Package agent is the group of the Nomad face in which the process and its servers tell of themselves. It has all below
// /v1/agent, /v1/status, /v1/operator/raft and /v1/operator/autopilot, profiles, and metrics, also those that are derived from
// the state.
//
// It measures nothing: telemetry does. A watched log has one goroutine that reads its tail; it ends with the request.
package agent
