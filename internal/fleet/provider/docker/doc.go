// Package docker is a cloud whose machines are containers of one docker daemon. Each runs a `drover agent` as its first process
// and has an address, a name and a size of its own.
//
// Everything that is known of a machine is kept by the daemon, as labels. Labels of a container can't be changed, so
// tags that are set later are the labels of a second container beside it, which never runs. A machine is its container:
// when the agent ends, by itself or by its dead-man switch, the machine has ended.
//
// The user data of a machine is its agent's configuration, in HCL or JSON: servers, join token, node pool.
//
// What is bought is decided by package scaler. Calls run in their caller's goroutine.
package docker
