// Package quotas does to the state what commands about quotas and what counts in them say. It also says which quotas namespaces may refer
// to. Its functions are pure: they read and write a transaction of the store.
//
// What a quota means is package quota's, and what is used of it the store counts. It starts no goroutines.
package quotas
