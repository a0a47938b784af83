// Package devicetest makes a machine with devices for tests: files as NVIDIA's kernel driver, sysfs and /dev have them, and a program
// that answers as nvidia-smi does. It starts no goroutines.
package devicetest
