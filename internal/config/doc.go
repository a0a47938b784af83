// Package config is the agent's configuration: Default, then files (HCL or JSON), then DROVER_… variables, then flags,
// put together by one Merge.
//
// It says what is wrong with a configuration, and does nothing with it: internal/server makes the parts. It starts no
// goroutines.
package config
