// Package account knows the guest's users and groups, as the guest's own passwd and group files have them. It lets a
// thread of drover-init do file work with the rights of one of them.
//
// What may be done as whom is asked for by the agent. It starts no goroutines; whoever acts as a user locks its thread.
package account
