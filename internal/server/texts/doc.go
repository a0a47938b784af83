// Package texts is where an agent evaluates what users wrote: templates of tasks on nodes, and job files on servers. Both run in
// child processes with limits (internal/evaluator), so that a text which asks for too much harms nobody but itself.
//
// What a template means is node/rendering's, and what a job file means is jobspec's; this package only joins the two to the pools of
// children. Run keeps children ready in its caller's goroutine, and ends with its context.
package texts
