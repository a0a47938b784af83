// Package fleet is the face of machines that are bought and returned: pools, machines, plans, costs, under /v1/fleet,
// and the management paths that users of Arvados' dispatcher know.
//
// Bodies are the root package's nouns; durations are nanoseconds. Errors are {"code","message"} with drover.Code's
// names, and {"errors":["…"]} on Arvados' paths.
//
// It holds no rules about pools or machines: the office does (package fleet/office). A request runs in the server's
// goroutine for it.
package fleet
