// Package loopback is a cloud whose machines are processes on this one: each is a `drover agent` with its own folder,
// address, name and size.
//
// What is known of a machine is kept in its folder, so another process with the same folder finds it again; machines
// outlive the process that made them. A machine is its agent's process: when that ends, by itself, by its dead-man
// switch or because it is destroyed, everything else that it started is ended, and its folder goes.
//
// A service manager that ends everything in its service's control group ends the machines with the server: under
// systemd, KillMode=process lets them live on.
//
// The user data of a machine is its agent's configuration, in HCL or JSON: servers, join token, node pool.
//
// What is bought is decided by package scaler. Calls run in their caller's goroutine.
package loopback
