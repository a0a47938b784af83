// Package dockerdtest gives tests a docker daemon of their own, by scripts/docker. It needs root and Debian's docker.io and
// busybox-static (scripts/deps). Whoever cannot have these says so: DROVER_TEST_DOCKER=off leaves the tests out.
//
// It is for tests only. The daemon ends with the test binary.
// It starts no goroutines: who ends the daemon is who started it.
package dockerdtest
