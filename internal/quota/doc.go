// Package quota decides how much the namespaces of a quota may use together. It counts what allocations hold and what variables
// take, and says what of a new one exceeds a limit. It is pure and starts no goroutines: who asks brings the quota and what is used.
//
// Who may act in a namespace is package rights', what its jobs may use package tenant's.
package quota
