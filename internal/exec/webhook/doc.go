// Package webhook posts receipts of executions to addresses that users name.
//
// Who may start executions may not thereby reach what only this machine can reach: only public addresses are dialled
// (package netguard), unless the configuration allows others. Redirects are not followed, and no proxy is used.
//
// What is posted, when, and how often again is package executor's. A post runs in its caller's goroutine.
package webhook
