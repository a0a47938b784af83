// Package admission judges jobs by the rules of the cluster: data that operators write, whose conditions are expressions of go-bexpr's
// language over what a task asks for. It is pure: who asks brings the rules and the job, and does what the levels of the rules say.
//
// A value that only the node will know, as it is interpolated there, may be anything: a rule whose answer depends on it is against the
// task.
//
// What the namespace itself allows is package tenant's, how much may be used package quota's. It starts no goroutines.
package admission
