// Package lookups answers what the templates of nodes' tasks ask: variables, and where services are found. Each task gets what its
// workload identity may read, and nothing else.
//
// One call carries many questions and waits until one of the answers is another one, so that templates cost nothing while nothing
// changes. It starts no goroutines: calls run in their callers'.
package lookups
