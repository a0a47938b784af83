// Package qemu is Nomad's driver of that name: a virtual machine by qemu-system-x86_64, as a process in a sandbox. What a job
// passes to qemu reaches what the sandbox reaches, and no more: an argument that names a file of the machine finds none.
//
// It starts no goroutines.
package qemu
