// Package bootstrap makes a machine one of the fleet's over ssh, for images that take no user data. It verifies the host key,
// waits for the boot probe, uploads our program and the agent's configuration, and starts the agent.
//
// It also writes what machines are told when they are made: their user data, with the configuration of their agents.
//
// Every step can be repeated: a machine that was half done is finished by the next Run, and nothing is started twice.
//
// It buys nothing, and reads what to upload from who calls it. Run works in its caller's goroutine.
package bootstrap
