// Package device finds the devices of a machine that jobs may ask for: GPUs of NVIDIA by the files of their driver and nvidia-smi,
// render nodes of AMD and Intel by sysfs. It says what a task needs to use those that it was given, and samples their usage.
//
// Who gets which is the scheduler's decision (control/scheduler/grant), and how a task is let to them its driver's. The package looks
// when it is asked: its only goroutine waits for the end of a program that tells about devices, which may hang in the kernel.
package device
